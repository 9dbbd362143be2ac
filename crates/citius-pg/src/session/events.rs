//! What the server says, and what comes of it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call::{Call, Host, Trouble, Work};
use super::state::{Ended, Execution, Heard, Over, Prepared, Request, Session};
use crate::connection::Event;
use crate::description::Description;
use crate::fault::Fault;
use crate::row::Row;

impl<C: Call> Session<C> {
    /// Takes all whole messages; returns how many bytes are left, which are to come again with more.
    pub fn receive(
        &mut self,
        host: C::Host<'_>,
        bytes: &[u8],
        heard: &mut Heard<C>,
        ended: &mut Ended<C>,
    ) -> usize {
        let mut input = bytes;
        while !self.is_closed {
            match self.protocol.receive(&mut input) {
                Ok(Some(event)) => self.take(host, event, heard, ended),
                Ok(None) => return input.len(),
                Err(fault) => {
                    heard.over = Some(Over::Fault(fault));
                    return 0;
                }
            }
        }
        0
    }

    #[inline]
    fn take(
        &mut self,
        host: C::Host<'_>,
        event: Event<'_>,
        heard: &mut Heard<C>,
        ended: &mut Ended<C>,
    ) {
        match event {
            Event::Row(row) => {
                if let Some(Request::Execute(execution)) = self.requests.front_mut() {
                    execution.row(host, row);
                }
            }
            Event::Complete(count) => {
                if let Some(Request::Execute(execution)) = self.requests.front_mut() {
                    execution.complete(count);
                }
            }
            Event::CopyIn => self.copied(host, None, heard),
            Event::CopyData(data) => self.copied(host, Some(data), heard),
            Event::Done(status) => {
                heard.status = Some(status);
                self.status = status;
                ended.append(&mut self.failing);
                self.done(host, heard, ended);
            }
            Event::Prepared(description) => {
                self.described(host, description, &mut heard.unknown_types);
            }
            Event::Failed(error) => self.fail(host, error, heard),
            Event::Open => heard.is_open = true,
            Event::Notice(notice) => heard.notices.push(*notice),
            Event::Parameter(name, value) => heard.parameters.push((name, value)),
            Event::Notification(process, channel, payload) => {
                heard.notifications.push((channel, payload, process));
            }
            Event::Columns(columns) => self.compare(host, &columns),
            Event::Suspended => {}
        }
    }

    /// The request that has waited longest is over.
    #[inline]
    fn done(&mut self, host: C::Host<'_>, heard: &mut Heard<C>, ended: &mut Ended<C>) {
        match self.requests.pop_front() {
            Some(Request::Execute(execution)) if execution.is_to_repeat => {
                heard.repeated.push(execution.call);
            }
            Some(Request::Execute(execution)) => {
                if let Work::Copy = execution.call.work() {
                    self.is_copying = false;
                }
                ended.push(execution.finish(host));
            }
            Some(Request::Reset) => self.end_reset(),
            Some(Request::Prepare(..)) | None => {}
        }
    }

    /// What a statement without a name returns is read as what comes before it says, where that can be read: it has been
    /// executed.
    fn compare(&mut self, host: C::Host<'_>, columns: &Description) {
        if let Some(Request::Execute(execution)) = self.requests.front_mut()
            && let Some((key, statement)) = &mut execution.statement
            && !statement.description().has_columns_of(columns)
        {
            if let Some(Prepared::Ready(known)) = self.statements.remove(key) {
                self.server_bytes = self.server_bytes.saturating_sub(known.footprint);
            }
            // Those of cursors are read later, and what is encoded has asked for other formats.
            let is_plain = matches!(execution.call.work(), Work::Statement);
            let found = is_plain.then(|| statement.with_columns(columns, host.types()));
            if let Some(found) = found.flatten() {
                let found = Arc::new(found);
                self.server_bytes += found.footprint;
                self.statements
                    .insert(*key, Prepared::Ready(Arc::clone(&found)));
                *statement = found;
            } else {
                let error = C::error(host, Trouble::Fault(&Fault::ColumnsChanged));
                execution.error = Some(error);
            }
        }
    }

    /// Data of a COPY, or without it the server's wish for some.
    fn copied(&self, host: C::Host<'_>, data: Option<&[u8]>, heard: &mut Heard<C>) {
        let Some(Request::Execute(execution)) = self.requests.front() else {
            return;
        };
        let call = &execution.call;
        if !matches!(call.work(), Work::Copy) || call.is_over() {
            return;
        }
        let (_, copied) = heard
            .copied
            .get_or_insert_with(|| (call.share(host), data.map(|_| Vec::new())));
        if let (Some(copied), Some(data)) = (copied, data) {
            copied.extend_from_slice(data);
        }
    }
}

impl<C: Call> Execution<C> {
    #[inline]
    fn row(&mut self, host: C::Host<'_>, row: Row<'_>) {
        let (Some((_, statement)), Some(rows)) = (&self.statement, &mut self.rows) else {
            return;
        };
        if self.error.is_some() || self.call.is_over() {
            return;
        }
        if let Err(error) = C::row(host, rows, statement, row) {
            self.error = Some(error);
        }
    }

    #[inline]
    fn complete(&mut self, count: u64) {
        match self.call.work() {
            Work::Each(_) => self.count += count,
            Work::Open(portal) | Work::Resume(portal) => {
                self.count = count;
                portal.end();
            }
            // Of a script the count is that of its last statement.
            _ => self.count = count,
        }
    }

    #[inline]
    fn finish(self, host: C::Host<'_>) -> (C, Result<C::Reply, C::Error>) {
        let result = if let Some(error) = self.error {
            Err(error)
        } else {
            let statement = self.statement.as_ref().map(|(_, statement)| &**statement);
            C::finish(host, self.rows, statement, self.count)
        };
        (self.call, result)
    }
}
