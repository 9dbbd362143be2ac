//! Contexts, as Go's: a tree of reasons to stop waiting.
//!
//! A context ends when it is cancelled, when its deadline has come, or with its parent. Goroutines that observe it are entered in
//! it, and are unparked when it ends; each then finds out by itself. A deadline needs no timer of its own: a goroutine that waits
//! sets one for the first deadline that concerns it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};

use citius_goroutine::{Goroutine, Nanos};

use super::clock::now;
use crate::Channel;
use crate::channel::{Element, Format};
use crate::lock::lock;

/// Why a context has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a call.
    Cancelled,
    /// By its deadline.
    Expired,
}

/// A context.
pub struct Context {
    parent: Option<Arc<Context>>,
    /// Its own deadline or an earlier one of its parents.
    deadline: Option<Nanos>,
    state: AtomicU8,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    goroutines: Vec<(usize, Goroutine)>,
    children: Vec<Weak<Context>>,
    /// Closed when it ends; made when it is asked for.
    done: Option<Channel>,
}

const LIVE: u8 = 0;
const CANCELLED: u8 = 1;
const EXPIRED: u8 = 2;

impl Context {
    /// A context below `parent`.
    pub fn new(parent: Option<Arc<Context>>, deadline: Option<Nanos>) -> Arc<Self> {
        let inherited = parent.as_ref().and_then(|parent| parent.deadline);
        let deadline = match (deadline, inherited) {
            (Some(own), Some(inherited)) => Some(own.min(inherited)),
            (own, inherited) => own.or(inherited),
        };
        let context = Arc::new(Self {
            parent,
            deadline,
            state: AtomicU8::new(LIVE),
            inner: Mutex::default(),
        });
        if let Some(parent) = &context.parent {
            let mut inner = lock(&parent.inner);
            inner.children.retain(|child| child.strong_count() > 0);
            inner.children.push(Arc::downgrade(&context));
            drop(inner);
            // It may have ended before the child was entered.
            if let Some(ended) = parent.ended() {
                context.end(ended);
            }
        }
        context
    }

    /// When it ends at the latest.
    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }

    /// Whether it has ended. A deadline that has come is found out here.
    pub fn ended(&self) -> Option<Ended> {
        match self.state.load(Ordering::Acquire) {
            LIVE => {}
            CANCELLED => return Some(Ended::Cancelled),
            _ => return Some(Ended::Expired),
        }
        let is_over = self.deadline.is_some_and(|deadline| now() >= deadline);
        if is_over {
            self.end(Ended::Expired);
            return Some(Ended::Expired);
        }
        None
    }

    /// Ends it, and all below it.
    pub fn cancel(&self) {
        self.end(Ended::Cancelled);
    }

    fn end(&self, ended: Ended) {
        let state = match ended {
            Ended::Cancelled => CANCELLED,
            Ended::Expired => EXPIRED,
        };
        let first = self
            .state
            .compare_exchange(LIVE, state, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            return;
        }
        let (goroutines, children, done) = {
            let mut inner = lock(&self.inner);
            let goroutines: Vec<Goroutine> = inner
                .goroutines
                .iter()
                .map(|(_, goroutine)| goroutine.clone())
                .collect();
            (
                goroutines,
                std::mem::take(&mut inner.children),
                inner.done.clone(),
            )
        };
        for goroutine in goroutines {
            goroutine.unpark();
        }
        for child in children.iter().filter_map(Weak::upgrade) {
            child.end(ended);
        }
        if let Some(done) = done {
            let _ = done.close();
        }
    }

    /// A goroutine observes it from now on; `word` names it.
    pub fn enter(&self, word: usize, goroutine: Goroutine) {
        lock(&self.inner).goroutines.push((word, goroutine));
    }

    /// It does no more.
    pub fn leave(&self, word: usize) {
        let left = {
            let mut inner = lock(&self.inner);
            let at = inner
                .goroutines
                .iter()
                .position(|(other, _)| *other == word);
            at.map(|at| inner.goroutines.swap_remove(at))
        };
        drop(left);
    }

    /// A channel that is closed when it ends, and whether it was made by this call.
    pub fn done(&self) -> (Channel, bool) {
        let (done, is_new) = {
            let mut inner = lock(&self.inner);
            let is_new = inner.done.is_none();
            let done = inner
                .done
                .get_or_insert_with(|| Channel::new(0, Element::fixed(0, Format::Unit)));
            (done.clone(), is_new)
        };
        if self.ended().is_some() {
            let _ = done.close();
        }
        (done, is_new)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A long chain of parents is dropped one by one, and not by recursion.
        let mut parent = self.parent.take();
        while let Some(context) = parent {
            parent = Arc::into_inner(context).and_then(|mut context| context.parent.take());
        }
    }
}
