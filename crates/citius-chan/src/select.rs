//! Select: one of several operations, chosen fairly among those that can be done.
//!
//! First each case is tried alone, in a random order. If none can be done, all channels are locked, in the order of their ids,
//! while the cases are tried again and queued: no other operation sees a ticket that is in only some of its queues, and a
//! select that finds nothing to do has found nothing at one moment.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::channel::{Attempt, Channel, State};
use crate::effects::Effects;
use crate::lock::Guard;
use crate::resident::Resident;
use crate::ticket::{Event, Outcome, Ticket, Wake};

/// One operation of a select. A case without a channel is never chosen.
///
/// `C` is how the channel is referred to: borrowed, or an [`Arc`].
#[derive(Debug)]
pub enum Case<C, V> {
    /// Receive from a channel.
    Receive(Option<C>),
    /// Send the value, which is taken when it is sent or queued.
    Send(Option<C>, Option<V>),
}

impl<C, V> Case<C, V> {
    /// The channel, if there is one.
    pub fn channel(&self) -> Option<&C> {
        match self {
            Self::Receive(channel) | Self::Send(channel, _) => channel.as_ref(),
        }
    }
}

/// A case apart: its channel, and its value if it sends one.
struct Part<'a, V, W: Wake<V>> {
    channel: Option<&'a Channel<V, W>>,
    value: Option<&'a mut Option<V>>,
    /// The place of its channel among those that are locked.
    place: usize,
}

/// Cases of most selects; more take memory from the allocator.
const CASES_INLINE: usize = 4;

type Parts<'a, V, W> = SmallVec<[Part<'a, V, W>; CASES_INLINE]>;
type Locked<'a, V, W> = SmallVec<[Guard<'a, State<V, W>>; CASES_INLINE]>;

/// Does one of the cases, or queues `ticket` for all of them if there is one.
///
/// `seed` decides among the cases that can be done; each is as likely as any other if seeds are. When a
/// ticket is complete, its owner has to [`forget`](Channel::forget) it on all channels.
pub fn select<C, V, W: Wake<V>>(
    cases: &mut [Case<C, V>],
    seed: u64,
    ticket: Option<&Arc<Ticket<V, W>>>,
) -> Option<Outcome<V>>
where
    C: Deref<Target = Channel<V, W>>,
{
    select_as(cases, seed, ticket, None)
}

/// [`select`] for `resident`, if there is one.
pub fn select_as<C, V, W: Wake<V>>(
    cases: &mut [Case<C, V>],
    seed: u64,
    ticket: Option<&Arc<Ticket<V, W>>>,
    resident: Option<&Resident<V, W>>,
) -> Option<Outcome<V>>
where
    C: Deref<Target = Channel<V, W>>,
{
    let mut order = Shuffled::new(cases.len(), seed);
    if let Some(outcome) = try_each(cases, &mut order, resident) {
        return Some(outcome);
    }
    let mut effects = Effects::default();
    let outcome = {
        let mut parts: Parts<'_, V, W> = cases.iter_mut().map(Part::of).collect();
        let mut states = lock_in_order(&mut parts, resident);
        let done = order.again().find_map(|case| {
            let event = attempt(&mut parts[case], &mut states, &mut effects)?;
            Some(Outcome { case, event })
        });
        if done.is_none()
            && let Some(ticket) = ticket
        {
            for (index, part) in parts.iter_mut().enumerate() {
                if part.channel.is_some() {
                    let value = part.value.as_mut().and_then(|value| value.take());
                    states[part.place].queue(ticket, index, value);
                }
            }
        }
        done
    };
    effects.carry_out(resident);
    outcome
}

/// Does the first case in `order` that can be done alone; no two channels are locked at a time.
fn try_each<C, V, W: Wake<V>>(
    cases: &mut [Case<C, V>],
    order: &mut Shuffled,
    resident: Option<&Resident<V, W>>,
) -> Option<Outcome<V>>
where
    C: Deref<Target = Channel<V, W>>,
{
    order.find_map(|case| {
        let attempt = match &mut cases[case] {
            Case::Receive(Some(channel)) => channel.try_receive_as(resident),
            Case::Send(Some(channel), value) => channel.try_send_as(value.take()?, resident),
            Case::Receive(None) | Case::Send(None, _) => return None,
        };
        match attempt {
            Attempt::Done(event) => Some(Outcome { case, event }),
            Attempt::Blocked(unsent) => {
                if let Case::Send(_, value) = &mut cases[case] {
                    *value = unsent;
                }
                None
            }
        }
    })
}

impl<'a, V, W: Wake<V>> Part<'a, V, W> {
    fn of<C: Deref<Target = Channel<V, W>>>(case: &'a mut Case<C, V>) -> Self {
        let (channel, value) = match case {
            Case::Receive(channel) => (channel.as_deref(), None),
            Case::Send(channel, value) => (channel.as_deref(), Some(value)),
        };
        Self {
            channel,
            value,
            place: 0,
        }
    }
}

fn attempt<V, W: Wake<V>>(
    part: &mut Part<'_, V, W>,
    states: &mut Locked<'_, V, W>,
    effects: &mut Effects<V, W>,
) -> Option<Event<V>> {
    part.channel?;
    let state = &mut states[part.place];
    let Some(value) = &mut part.value else {
        return state.receive(effects);
    };
    match state.send(value.take()?, effects) {
        Ok(event) => Some(event),
        Err(unsent) => {
            **value = Some(unsent);
            None
        }
    }
}

/// Locks the channels of the cases, each once, in the order of their ids, and notes where each is.
fn lock_in_order<'a, V, W: Wake<V>>(
    parts: &mut Parts<'a, V, W>,
    resident: Option<&Resident<V, W>>,
) -> Locked<'a, V, W> {
    let mut channels: SmallVec<[&'a Channel<V, W>; CASES_INLINE]> =
        parts.iter().filter_map(|part| part.channel).collect();
    channels.sort_unstable_by_key(|channel| channel.id());
    channels.dedup_by_key(|channel| channel.id());
    for part in parts {
        if let Some(channel) = part.channel {
            let place = channels.binary_search_by_key(&channel.id(), |other| other.id());
            part.place = place.unwrap_or_default();
        }
    }
    channels
        .iter()
        .map(|channel| channel.lock_for(resident))
        .collect()
}

/// The indices below a number in an order that a seed decides (Fisher and Yates, xorshift64*). Each is decided when it is asked for:
/// the first case is often one that can be done.
struct Shuffled {
    /// Those that are decided stand behind the others, the first at the end.
    indices: SmallVec<[usize; 8]>,
    undecided: usize,
    state: u64,
}

impl Shuffled {
    fn new(n: usize, seed: u64) -> Self {
        // Most are copied, which is quicker than counting.
        const FIRST: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
        Self {
            indices: match FIRST.get(..n) {
                Some(indices) => SmallVec::from_slice(indices),
                None => (0..n).collect(),
            },
            undecided: n,
            state: (seed ^ 0x9e37_79b9_7f4a_7c15).max(1),
        }
    }

    /// All of them in this order, when each has been asked for.
    fn again(&self) -> impl Iterator<Item = usize> {
        debug_assert_eq!(self.undecided, 0, "each has been asked for");
        self.indices.iter().rev().copied()
    }
}

impl Iterator for Shuffled {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let last = self.undecided.checked_sub(1)?;
        self.undecided = last;
        if last > 0 {
            self.state ^= self.state >> 12;
            self.state ^= self.state << 25;
            self.state ^= self.state >> 27;
            let roll = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
            // 32 random bits times the number of choices: the upper half is the choice, without a division.
            let choice = (roll * (last as u64 + 1)) >> 32;
            self.indices
                .swap(last, usize::try_from(choice).unwrap_or(0));
        }
        Some(self.indices[last])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_order_is_as_likely_as_any_other() {
        const SEEDS: u64 = 24_000;
        let mut counts: HashMap<Vec<usize>, u64> = HashMap::new();
        for seed in 0..SEEDS {
            let mut order = Shuffled::new(4, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let asked: Vec<usize> = order.by_ref().collect();
            assert_eq!(order.again().collect::<Vec<_>>(), asked);
            *counts.entry(asked).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        for (order, count) in counts {
            assert!((800..1200).contains(&count), "{order:?}: {count}");
        }
    }

    #[test]
    fn none_is_in_an_order_of_none() {
        assert_eq!(Shuffled::new(0, 1).next(), None);
    }
}
