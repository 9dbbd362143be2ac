//! Select: one of several operations, chosen fairly among those that can be done.
//!
//! All channels are locked, in the order of their ids, while the cases are tried and, if none can be
//! done, queued: no other operation sees a ticket that is in only some of its queues.

use std::sync::{Arc, MutexGuard};

use smallvec::SmallVec;

use crate::channel::{Channel, State};
use crate::effects::Effects;
use crate::ticket::{Outcome, Ticket, Wake};

/// One operation of a select. A case without a channel is never chosen.
#[derive(Debug)]
pub enum Case<V, W> {
    /// Receive from a channel.
    Receive(Option<Arc<Channel<V, W>>>),
    /// Send the value, which is taken when it is sent or queued.
    Send(Option<Arc<Channel<V, W>>>, Option<V>),
}

impl<V, W> Case<V, W> {
    /// The channel, if there is one.
    pub fn channel(&self) -> Option<&Arc<Channel<V, W>>> {
        match self {
            Self::Receive(channel) | Self::Send(channel, _) => channel.as_ref(),
        }
    }
}

/// Does one of the cases, or queues `ticket` for all of them if there is one.
///
/// `seed` decides among the cases that can be done; each is as likely as any other if seeds are. When a
/// ticket is complete, its owner has to [`forget`](Channel::forget) it on all channels.
pub fn select<V, W: Wake<V>>(
    cases: &mut [Case<V, W>],
    seed: u64,
    ticket: Option<&Arc<Ticket<V, W>>>,
) -> Option<Outcome<V>> {
    let mut effects = Effects::default();
    let outcome = {
        let channels = in_order(cases);
        let mut states: SmallVec<[MutexGuard<'_, State<V, W>>; 4]> =
            channels.iter().map(|channel| channel.lock()).collect();
        let state_of = |case: &Case<V, W>| -> Option<usize> {
            let id = case.channel()?.id();
            channels.binary_search_by_key(&id, |other| other.id()).ok()
        };
        let done = shuffled(cases.len(), seed).into_iter().find_map(|case| {
            let state = &mut states[state_of(&cases[case])?];
            let event = attempt(&mut cases[case], state, &mut effects)?;
            Some(Outcome { case, event })
        });
        if done.is_none()
            && let Some(ticket) = ticket
        {
            for (index, case) in cases.iter_mut().enumerate() {
                let Some(state) = state_of(case) else {
                    continue;
                };
                let value = match case {
                    Case::Receive(_) => None,
                    Case::Send(_, value) => value.take(),
                };
                states[state].queue(ticket, index, value);
            }
        }
        done
    };
    effects.carry_out();
    outcome
}

fn attempt<V, W>(
    case: &mut Case<V, W>,
    state: &mut State<V, W>,
    effects: &mut Effects<V, W>,
) -> Option<crate::ticket::Event<V>> {
    match case {
        Case::Receive(_) => state.receive(effects),
        Case::Send(_, value) => match state.send(value.take()?, effects) {
            Ok(event) => Some(event),
            Err(unsent) => {
                *value = Some(unsent);
                None
            }
        },
    }
}

/// The channels of the cases, each once, in the order in which they are locked.
fn in_order<V, W: Wake<V>>(cases: &[Case<V, W>]) -> SmallVec<[Arc<Channel<V, W>>; 4]> {
    let mut channels: SmallVec<[Arc<Channel<V, W>>; 4]> =
        cases.iter().filter_map(Case::channel).cloned().collect();
    channels.sort_unstable_by_key(|channel| channel.id());
    channels.dedup_by_key(|channel| channel.id());
    channels
}

/// The indices below `n` in an order that `seed` decides (Fisher and Yates, xorshift64*).
fn shuffled(n: usize, seed: u64) -> SmallVec<[usize; 8]> {
    let mut order: SmallVec<[usize; 8]> = (0..n).collect();
    let mut state = (seed ^ 0x9e37_79b9_7f4a_7c15).max(1);
    for last in (1..n).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let roll = usize::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0);
        order.swap(last, roll % (last + 1));
    }
    order
}
