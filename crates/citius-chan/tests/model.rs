//! A randomized scheduler over the pure state, held against a model of Go's rules.
//!
//! The model keeps all waiting operations in one list, in the order of their arrival, and decides by searching
//! it. Callers send, receive, select, close, cancel and give values back in an order that a seed decides;
//! after every step both must agree on the outcomes, on the waiting operations, and on the content of each channel.
//!
//! In every second campaign some parties are residents of the one thread, so that channels become confined to it, and are shared
//! again when a party that is no resident comes.
#![allow(unsafe_code, reason = "a resident's thread is the test's promise")]

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::Mutex;

use citius_chan::{
    Begun, Case, Channel, Completion, Event, Outcome, Record, Resident, Ticket, Wake, select,
    select_as,
};
use citius_testkit::rng::Rng;

const PARTIES: usize = 6;
const CHANNELS: usize = 3;
const STEPS: usize = 2000;

/// Notes who was woken.
struct Bell {
    party: usize,
    rung: Arc<Mutex<Vec<usize>>>,
}

impl Wake<u64> for Bell {
    type Home = Arc<Mutex<Vec<usize>>>;
    type Here = Arc<Mutex<Vec<usize>>>;

    fn wake(ticket: Arc<Ticket<u64, Self>>) {
        assert!(ticket.is_done(), "a waiter was woken without an outcome");
        let bell = ticket.waker();
        bell.rung.lock().expect("no panic").push(bell.party);
    }

    fn home(here: &Self::Here) -> Self::Home {
        Arc::clone(here)
    }

    fn wake_resident(rung: &Self::Home, key: u64) {
        let party = usize::try_from(key).expect("a party");
        rung.lock().expect("no panic").push(party);
    }

    fn wake_here(rung: &Self::Here, key: u64) {
        Self::wake_resident(rung, key);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Receive(usize),
    Send(usize, u64),
}

impl Op {
    fn channel(self) -> usize {
        match self {
            Self::Receive(channel) | Self::Send(channel, _) => channel,
        }
    }

    /// What a resident's completion is as an event.
    fn event(self, completion: Completion, place: Option<u64>) -> Event<u64> {
        match (self, completion, place) {
            (Self::Receive(_), Completion::Transferred, Some(value)) => Event::Received(value),
            (Self::Receive(_), Completion::Closed, None) => Event::Drained,
            (Self::Send(..), Completion::Transferred, None) => Event::Sent,
            (Self::Send(..), Completion::Closed, Some(value)) => Event::Refused(value),
            _ => panic!("{self:?}: {completion:?} with {place:?}"),
        }
    }
}

/// The specification, with lists.
#[derive(Default)]
struct Model {
    buffers: Vec<Vec<u64>>,
    capacities: Vec<usize>,
    closed: Vec<bool>,
    waiting: Vec<(usize, Vec<Op>)>,
    complete: Vec<(usize, Outcome<u64>)>,
}

impl Model {
    fn receiver(&self, channel: usize) -> Option<(usize, usize)> {
        self.first(|op| op == Op::Receive(channel))
    }

    fn sender(&self, channel: usize) -> Option<(usize, usize)> {
        self.first(|op| matches!(op, Op::Send(other, _) if other == channel))
    }

    /// Place in the list and case of who has waited longest.
    fn first(&self, fits: impl Fn(Op) -> bool) -> Option<(usize, usize)> {
        self.waiting
            .iter()
            .enumerate()
            .find_map(|(place, (_, ops))| Some((place, ops.iter().position(|op| fits(*op))?)))
    }

    fn is_possible(&self, op: Op) -> bool {
        let channel = op.channel();
        self.closed[channel]
            || match op {
                Op::Receive(_) => {
                    !self.buffers[channel].is_empty() || self.sender(channel).is_some()
                }
                Op::Send(..) => {
                    self.buffers[channel].len() < self.capacities[channel]
                        || self.receiver(channel).is_some()
                }
            }
    }

    fn complete(&mut self, place: usize, case: usize, event: Event<u64>) -> Op {
        let (party, ops) = self.waiting.remove(place);
        self.complete.push((party, Outcome { case, event }));
        ops[case]
    }

    fn perform(&mut self, op: Op) -> Event<u64> {
        match op {
            Op::Send(channel, value) if self.closed[channel] => Event::Refused(value),
            Op::Send(channel, value) => {
                match self.receiver(channel) {
                    Some((place, case)) => {
                        self.complete(place, case, Event::Received(value));
                    }
                    None => self.buffers[channel].push(value),
                }
                Event::Sent
            }
            Op::Receive(channel) => {
                let kept =
                    (!self.buffers[channel].is_empty()).then(|| self.buffers[channel].remove(0));
                let has_room = self.buffers[channel].len() < self.capacities[channel];
                let mut sent = None;
                if (kept.is_none() || has_room)
                    && let Some((place, case)) = self.sender(channel)
                    && let Op::Send(_, value) = self.complete(place, case, Event::Sent)
                {
                    sent = Some(value);
                }
                match (kept, sent) {
                    (Some(kept), sent) => {
                        self.buffers[channel].extend(sent);
                        Event::Received(kept)
                    }
                    (None, Some(sent)) => Event::Received(sent),
                    (None, None) => Event::Drained,
                }
            }
        }
    }

    fn close(&mut self, channel: usize) -> bool {
        if std::mem::replace(&mut self.closed[channel], true) {
            return false;
        }
        while let Some((place, case)) = self.receiver(channel) {
            self.complete(place, case, Event::Drained);
        }
        while let Some((place, case)) = self.sender(channel) {
            let Op::Send(_, value) = self.waiting[place].1[case] else {
                unreachable!("a sender sends");
            };
            self.complete(place, case, Event::Refused(value));
        }
        true
    }

    fn put_back(&mut self, channel: usize, value: u64) {
        match self.receiver(channel) {
            Some((place, case)) => {
                self.complete(place, case, Event::Received(value));
            }
            None => self.buffers[channel].insert(0, value),
        }
    }
}

struct Party {
    wait: Waiting,
    ops: Vec<Op>,
}

enum Waiting {
    Ticket(Arc<Ticket<u64, Bell>>),
    Record(Record),
}

struct Campaign {
    rng: Rng,
    channels: Vec<Arc<Channel<u64, Bell>>>,
    model: Model,
    parties: Vec<Option<Party>>,
    rung: Arc<Mutex<Vec<usize>>>,
    /// Of the parties that are residents.
    residents: Vec<Option<Resident<u64, Bell>>>,
    /// Others than residents come now.
    is_mixed: bool,
    next_value: u64,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    waits: usize,
    select_waits: usize,
    cancels: usize,
    returns: usize,
    refusals: usize,
    records: usize,
    unconfined: usize,
}

/// The thread of the residents of a campaign. No two campaigns share channels.
const THREAD: NonZeroU64 = NonZeroU64::MIN;

impl Campaign {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let rung: Arc<Mutex<Vec<usize>>> = Arc::default();
        let resident = |party: usize| {
            let is_resident = seed % 2 == 1 && !party.is_multiple_of(3);
            // SAFETY: the campaign runs on one thread.
            is_resident.then(|| unsafe { Resident::new(THREAD, Arc::clone(&rung), party as u64) })
        };
        let residents = (0..PARTIES).map(resident).collect();
        let capacities: Vec<usize> = (0..CHANNELS).map(|_| rng.below(3)).collect();
        Self {
            channels: capacities
                .iter()
                .map(|capacity| Arc::new(Channel::confinable(*capacity)))
                .collect(),
            model: Model {
                buffers: vec![Vec::new(); CHANNELS],
                closed: vec![false; CHANNELS],
                capacities,
                ..Model::default()
            },
            parties: (0..PARTIES).map(|_| None).collect(),
            rung,
            residents,
            is_mixed: seed % 4 != 1,
            next_value: 0,
            seen: Seen::default(),
            rng,
        }
    }

    fn step(&mut self) {
        let was_confined = self.confined();
        self.play();
        self.seen.unconfined += usize::from(self.confined() < was_confined);
    }

    fn play(&mut self) {
        if self.rng.once_in(400) {
            self.is_mixed = !self.is_mixed;
        }
        let mut party = self.rng.below(PARTIES);
        if !self.is_mixed && self.residents[party].is_none() {
            party = 1;
        }
        if self.parties[party].is_some() {
            if self.rng.once_in(8) {
                self.cancel(party);
            }
        } else if self.rng.once_in(if self.is_mixed { 150 } else { 3000 }) {
            let channel = self.rng.below(CHANNELS);
            let closed = match &self.residents[party] {
                Some(resident) => self.channels[channel].close_as(resident).is_ok(),
                None => self.channels[channel].close().is_ok(),
            };
            assert_eq!(closed, self.model.close(channel));
        } else {
            self.operate(party);
        }
        self.collect();
        self.compare();
    }

    fn op(&mut self) -> Op {
        let channel = self.rng.below(CHANNELS);
        if self.rng.once_in(2) {
            return Op::Receive(channel);
        }
        self.next_value += 1;
        Op::Send(channel, self.next_value)
    }

    fn operate(&mut self, party: usize) {
        let n = [1, 1, 2, 3][self.rng.below(4)];
        let ops: Vec<Op> = (0..n).map(|_| self.op()).collect();
        let ticket = Arc::new(Ticket::new(Bell {
            party,
            rung: Arc::clone(&self.rung),
        }));
        let (begun, place) = self.ask_as_resident(party, &ops);
        let outcome = match begun {
            Some(Begun::Waits(record)) => {
                assert_eq!(place, None, "what it sends is taken");
                self.seen.records += 1;
                return self.has_to_wait(party, ops, Waiting::Record(record));
            }
            Some(Begun::Done(completion)) => Some(Outcome {
                case: 0,
                event: ops[0].event(completion, place),
            }),
            None => self.ask(party, &ops, &ticket),
        };
        let possible: Vec<usize> = (0..n).filter(|i| self.model.is_possible(ops[*i])).collect();
        if let Some(outcome) = outcome {
            assert!(possible.contains(&outcome.case), "{ops:?}: {outcome:?}");
            let expected = self.model.perform(ops[outcome.case]);
            assert_eq!(outcome.event, expected);
            return self.use_up(ops[outcome.case], &outcome.event);
        }
        self.has_to_wait(party, ops, Waiting::Ticket(ticket));
    }

    fn has_to_wait(&mut self, party: usize, ops: Vec<Op>, wait: Waiting) {
        for op in &ops {
            assert!(!self.model.is_possible(*op), "{ops:?} waits in vain");
        }
        self.seen.waits += 1;
        self.seen.select_waits += usize::from(ops.len() > 1);
        self.model.waiting.push((party, ops.clone()));
        self.parties[party] = Some(Party { wait, ops });
    }

    fn confined(&self) -> usize {
        let channels = self.channels.iter();
        channels.filter(|channel| channel.is_confined()).count()
    }

    /// A lone operation of a resident, on a channel that is confined to its thread, and what is in its place afterwards.
    fn ask_as_resident(&self, party: usize, ops: &[Op]) -> (Option<Begun>, Option<u64>) {
        let Some(resident) = self.residents[party].as_ref() else {
            return (None, None);
        };
        match *ops {
            [Op::Receive(channel)] => {
                let mut place = None;
                let begun = self.channels[channel].receive_at_home(&mut place, resident);
                (begun, place)
            }
            [Op::Send(channel, value)] => {
                let mut place = Some(value);
                let begun = self.channels[channel].send_at_home(&mut place, resident);
                (begun, place)
            }
            _ => (None, None),
        }
    }

    fn ask(
        &mut self,
        party: usize,
        ops: &[Op],
        ticket: &Arc<Ticket<u64, Bell>>,
    ) -> Option<Outcome<u64>> {
        let resident = self.residents[party].as_ref();
        let event = match *ops {
            [Op::Receive(channel)] => self.channels[channel].receive_as(ticket, resident)?,
            [Op::Send(channel, value)] => {
                self.channels[channel].send_as(value, ticket, resident)?
            }
            _ => {
                let channel = |op: &Op| Some(Arc::clone(&self.channels[op.channel()]));
                let mut cases: Vec<Case<Arc<Channel<u64, Bell>>, u64>> = ops
                    .iter()
                    .map(|op| match op {
                        Op::Receive(_) => Case::Receive(channel(op)),
                        Op::Send(_, value) => Case::Send(channel(op), Some(*value)),
                    })
                    .collect();
                cases.push(Case::Receive(None));
                return select_as(&mut cases, self.rng.next_u64(), Some(ticket), resident);
            }
        };
        Some(Outcome { case: 0, event })
    }

    /// What was received is given back at times, as by who is cancelled when it is too late.
    fn use_up(&mut self, op: Op, event: &Event<u64>) {
        match *event {
            Event::Received(value) if self.is_mixed && self.rng.once_in(20) => {
                self.seen.returns += 1;
                self.channels[op.channel()].put_back(value);
                self.model.put_back(op.channel(), value);
            }
            Event::Refused(_) => self.seen.refusals += 1,
            Event::Received(_) | Event::Drained | Event::Sent => {}
        }
    }

    fn cancel(&mut self, party: usize) {
        let Some(Party { wait, ops }) = self.parties[party].take() else {
            return;
        };
        self.seen.cancels += 1;
        match wait {
            Waiting::Record(record) => {
                let resident = self.residents[party].as_ref().expect("a resident's");
                let mut place = None;
                let channel = &self.channels[ops[0].channel()];
                let completion = channel.give_up(record, &mut place, resident);
                assert_eq!(completion, None, "it still waits, by the model");
                let unsent = match ops[0] {
                    Op::Send(_, value) => Some(value),
                    Op::Receive(_) => None,
                };
                assert_eq!(place, unsent, "what it was to send is given back");
            }
            Waiting::Ticket(ticket) => {
                assert!(ticket.claim(), "it still waits, by the model");
                // Sometimes its entries stay in the queues for a while: no operation may pair with it.
                for op in ops.iter().filter(|_| !self.rng.once_in(3)) {
                    let resident = self.residents[party].as_ref();
                    self.channels[op.channel()].forget_as(&ticket, resident);
                }
                assert_eq!(ticket.take(), None);
            }
        }
        self.model.waiting.retain(|(other, _)| *other != party);
    }

    /// Takes the outcome.
    fn collect(&mut self) {
        loop {
            let mut rung = std::mem::take(&mut *self.rung.lock().expect("no panic"));
            let complete = std::mem::take(&mut self.model.complete);
            let mut expected: Vec<usize> = complete.iter().map(|(party, _)| *party).collect();
            rung.sort_unstable();
            expected.sort_unstable();
            assert_eq!(rung, expected, "woken, and who should be");
            if complete.is_empty() {
                return;
            }
            for (party, expected) in complete {
                let Party { wait, ops } = self.parties[party].take().expect("it waited");
                let outcome = self.fetch(party, &ops, &wait);
                assert_eq!(outcome, expected);
                self.use_up(ops[outcome.case], &outcome.event);
            }
        }
    }

    fn fetch(&self, party: usize, ops: &[Op], wait: &Waiting) -> Outcome<u64> {
        let resident = self.residents[party].as_ref();
        match wait {
            Waiting::Record(record) => {
                let resident = resident.expect("a resident's");
                let mut place = None;
                let channel = &self.channels[ops[0].channel()];
                let completion = channel.fetch(*record, &mut place, resident);
                let event = ops[0].event(completion.expect("complete"), place);
                Outcome { case: 0, event }
            }
            Waiting::Ticket(ticket) => {
                for op in ops {
                    self.channels[op.channel()].forget_as(ticket, resident);
                }
                let outcome = ticket.take().expect("complete");
                assert_eq!(ticket.take(), None, "there is one outcome");
                outcome
            }
        }
    }

    fn compare(&self) {
        if !self.is_mixed {
            // To look at a channel, as any thread may, would make it shared.
            return;
        }
        for (index, channel) in self.channels.iter().enumerate() {
            assert_eq!(channel.len(), self.model.buffers[index].len());
            assert_eq!(channel.is_closed(), self.model.closed[index]);
            let mut kept = Vec::new();
            let visited: Result<(), ()> = channel.try_visit(|value| {
                kept.push(*value);
                Ok(())
            });
            assert_eq!(visited, Ok(()));
            assert_eq!(
                kept[..channel.len()],
                self.model.buffers[index],
                "in the order sent"
            );
        }
    }
}

#[test]
fn agrees_with_the_model_for_thousands_of_seeds() {
    let mut seen = Seen::default();
    for seed in 0..500 {
        let mut campaign = Campaign::new(seed);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..STEPS {
                campaign.step();
            }
        }));
        assert!(played.is_ok(), "seed {seed}");
        seen.waits += campaign.seen.waits;
        seen.select_waits += campaign.seen.select_waits;
        seen.cancels += campaign.seen.cancels;
        seen.returns += campaign.seen.returns;
        seen.refusals += campaign.seen.refusals;
        seen.records += campaign.seen.records;
        seen.unconfined += campaign.seen.unconfined;
    }
    // A campaign that never gets anywhere proves nothing.
    for count in [
        seen.waits,
        seen.select_waits,
        seen.cancels,
        seen.returns,
        seen.refusals,
        seen.records,
        seen.unconfined * 10,
    ] {
        assert!(count > 1000, "{seen:?}");
    }
}

#[test]
fn a_select_chooses_evenly() {
    let channels: Vec<Arc<Channel<u64, Bell>>> =
        (0..4).map(|_| Arc::new(Channel::new(1))).collect();
    for channel in channels.iter().take(3) {
        let _ = channel.try_send(1);
    }
    let mut chosen = [0_u32; 4];
    let mut rng = Rng::new(7);
    for _ in 0..6000 {
        let mut cases: Vec<_> = channels
            .iter()
            .map(|channel| Case::Receive(Some(Arc::clone(channel))))
            .collect();
        let outcome = select(&mut cases, rng.next_u64(), None).expect("three of four can be done");
        chosen[outcome.case] += 1;
        channels[outcome.case].put_back(1);
    }
    assert_eq!(chosen[3], 0);
    for count in &chosen[..3] {
        assert!((1800..2200).contains(count), "{chosen:?}");
    }
}
