//! The functions of the header for channels. A `citius_chan` is a reference to a [`TypedChannel`].

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use citius_abi::{Bytes, DropFunction};
use citius_chan::{AlreadyClosed, Attempt, Begun, Case, Completion, Event, Record, select_as};
use smallvec::SmallVec;

use super::codes::{CLOSED, MISUSE, OK, TIMEOUT, interrupted, misuse};
use super::interpreter::interpreter;
use super::mistake::Mistake;
use super::names;
use super::packed::Packed;
use super::wait::{self, Interrupted, Lone, Until, Wait};
use crate::channel::{
    Channel, Element, Format, Object, Outcome, RawChannel, Resident, Ticket, TypedChannel, Value,
};
use crate::objects::Objects;

/// A `citius_chan *`.
pub(crate) type Pointer = *const TypedChannel;

const FORKED: Mistake = c"it uses a channel that was made before the fork, in the parent process, where its goroutines are";
const WRONG_SIZE: Mistake = c"it passes a value of another size than the channel's";
const NOT_BYTES: Mistake = c"it sends or receives bytes on a channel of another kind";
const NOT_OBJECTS: Mistake = c"it sends or receives an object on a channel of another kind";
const OF_OBJECTS: Mistake = c"it sends or receives a value on a channel of Python's objects; use citius_chan_send_object with the GIL";
const NO_GIL: Mistake = c"it sends or receives an object without the GIL";
const NO_OBJECT: Mistake = c"it sends an object that is NULL";
const OWNS: Mistake = c"it makes a channel of bytes or objects with a function that frees values";
const NEVER_READY: Mistake = c"it waits without end for a channel that is NULL";

// --- references ---------------------------------------------------------------------------------

/// Gives a reference to native code.
pub(crate) fn into_pointer(channel: Channel) -> Pointer {
    Arc::into_raw(channel.into_shared())
}

/// Looks at a channel of native code's.
///
/// # Safety
/// `pointer` must be a reference that native code has.
unsafe fn borrow(pointer: Pointer) -> ManuallyDrop<Channel> {
    // SAFETY: the caller's; the reference stays native code's.
    ManuallyDrop::new(Channel::from_shared(unsafe { Arc::from_raw(pointer) }))
}

pub(crate) unsafe extern "C" fn make(
    kind: c_int,
    size: usize,
    capacity: usize,
    drop: Option<DropFunction>,
) -> Pointer {
    let element = match kind {
        0 => Element::Fixed {
            size,
            format: if size == 0 {
                Format::Unit
            } else {
                Format::Opaque
            },
            drop,
        },
        1 => Element::fixed(8, Format::Integer),
        2 => Element::fixed(8, Format::Real),
        3 => Element::fixed(1, Format::Bool),
        4 => Element::fixed(0, Format::Unit),
        5 => Element::Bytes,
        6 => Element::Object,
        _ => {
            misuse(c"it makes a channel of a kind that there is not");
            return ptr::null();
        }
    };
    if kind != 0 && drop.is_some() {
        misuse(OWNS);
        return ptr::null();
    }
    into_pointer(Channel::new(capacity, element))
}

pub(crate) unsafe extern "C" fn find(name: *const c_char, name_size: usize) -> Pointer {
    // SAFETY: what the header asks handlers for.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), name_size) };
    names::channel(name).map_or(ptr::null(), into_pointer)
}

pub(crate) unsafe extern "C" fn retain(pointer: Pointer) -> Pointer {
    // SAFETY: a reference of the caller's.
    unsafe { Arc::increment_strong_count(pointer) };
    pointer
}

pub(crate) unsafe extern "C" fn release(pointer: Pointer) {
    // SAFETY: a reference of the caller's, which it has no more.
    drop(unsafe { Arc::from_raw(pointer) });
}

// --- operations ---------------------------------------------------------------------------------

/// With the place for the value.
struct Receive<'a>(&'a RawChannel, Option<Value>);

impl Wait for Receive<'_> {
    #[inline]
    fn attempt(
        &mut self,
        ticket: Option<&Arc<Ticket>>,
        resident: Option<&Resident>,
    ) -> Option<Outcome> {
        let event = match ticket {
            Some(ticket) => self.0.receive_as(ticket, resident)?,
            None => match self.0.try_receive_as(resident) {
                Attempt::Done(event) => event,
                Attempt::Blocked(_) => return None,
            },
        };
        Some(Outcome { case: 0, event })
    }

    fn forget(&self, ticket: &Arc<Ticket>, resident: Option<&Resident>) {
        self.0.forget_as(ticket, resident);
    }
}

impl Lone for Receive<'_> {
    fn place(&mut self) -> &mut Option<Value> {
        &mut self.1
    }

    #[inline]
    fn begin(&mut self, resident: &Resident) -> Option<Begun> {
        self.0.receive_at_home(&mut self.1, resident)
    }

    #[inline]
    fn fetch(&mut self, record: Record, resident: &Resident) -> Option<Completion> {
        self.0.fetch(record, &mut self.1, resident)
    }

    fn give_up(&mut self, record: Record, resident: &Resident) -> Option<Completion> {
        self.0.give_up(record, &mut self.1, resident)
    }
}

/// With the value, which is taken when it is sent or queued.
struct Send<'a>(&'a RawChannel, Option<Value>);

impl Wait for Send<'_> {
    #[inline]
    fn attempt(
        &mut self,
        ticket: Option<&Arc<Ticket>>,
        resident: Option<&Resident>,
    ) -> Option<Outcome> {
        let value = self.1.take()?;
        let event = match ticket {
            Some(ticket) => self.0.send_as(value, ticket, resident)?,
            None => match self.0.try_send_as(value, resident) {
                Attempt::Done(event) => event,
                Attempt::Blocked(value) => {
                    self.1 = value;
                    return None;
                }
            },
        };
        Some(Outcome { case: 0, event })
    }

    fn forget(&self, ticket: &Arc<Ticket>, resident: Option<&Resident>) {
        self.0.forget_as(ticket, resident);
    }
}

impl Lone for Send<'_> {
    fn place(&mut self) -> &mut Option<Value> {
        &mut self.1
    }

    #[inline]
    fn begin(&mut self, resident: &Resident) -> Option<Begun> {
        self.0.send_at_home(&mut self.1, resident)
    }

    #[inline]
    fn fetch(&mut self, record: Record, resident: &Resident) -> Option<Completion> {
        self.0.fetch(record, &mut self.1, resident)
    }

    fn give_up(&mut self, record: Record, resident: &Resident) -> Option<Completion> {
        self.0.give_up(record, &mut self.1, resident)
    }
}

struct Select<'a, 'b>(&'a mut [Case<&'b RawChannel, Value>]);

impl Wait for Select<'_, '_> {
    fn attempt(
        &mut self,
        ticket: Option<&Arc<Ticket>>,
        resident: Option<&Resident>,
    ) -> Option<Outcome> {
        select_as(self.0, seed(), ticket, resident)
    }

    fn forget(&self, ticket: &Arc<Ticket>, resident: Option<&Resident>) {
        for channel in self.0.iter().filter_map(Case::channel) {
            channel.forget_as(ticket, resident);
        }
    }

    fn is_select(&self) -> bool {
        true
    }
}

/// A number for each select, spread by the select itself. Threads may have the same one at the same time, which does no harm: an
/// addition that no other thread could come in between would cost a twentieth of a select.
fn seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let seed = NEXT.load(Ordering::Relaxed);
    NEXT.store(seed.wrapping_add(0x9e37_79b9_7f4a_7c15), Ordering::Relaxed);
    seed
}

#[cold]
fn never(until: Until) -> c_int {
    if until == Until::Forever && super::green::with_current(|_| ()).is_none() {
        return misuse(NEVER_READY);
    }
    match wait::perform(&mut wait::Never, until) {
        Err(reason) => interrupted(reason),
        Ok(_) => TIMEOUT,
    }
}

/// Sends a value; `Err` is for the caller to return.
#[inline]
pub(crate) fn send_value(channel: &RawChannel, value: Value, until: Until) -> c_int {
    match wait::perform_lone(&mut Send(channel, Some(value)), until) {
        Ok(Completion::Transferred) => OK,
        Ok(Completion::Closed) => CLOSED,
        Err(reason) => interrupted(reason),
    }
}

/// Receives a value; `Err` is for the caller to return.
///
/// # Errors
/// The code that says why there is none.
#[inline]
pub fn receive_value(channel: &RawChannel, until: Until) -> Result<Value, c_int> {
    let mut operation = Receive(channel, None);
    match wait::perform_lone(&mut operation, until) {
        Ok(_) => operation.1.ok_or(CLOSED),
        Err(reason) => Err(interrupted(reason)),
    }
}

/// Receives from whichever of two channels has a value, which is dropped.
///
/// # Errors
/// The code that says why there is none.
pub(crate) fn receive_either(
    one: &RawChannel,
    other: &RawChannel,
    until: Until,
) -> Result<(), c_int> {
    let mut cases = [Case::Receive(Some(one)), Case::Receive(Some(other))];
    match wait::perform(&mut Select(&mut cases), until) {
        Ok(outcome) if matches!(outcome.event, Event::Received(_)) => Ok(()),
        Ok(_) => Err(CLOSED),
        Err(reason) => Err(interrupted(reason)),
    }
}

/// The element of a channel of values of `size` bytes.
#[inline]
fn fixed(channel: &TypedChannel, size: usize) -> Result<Option<DropFunction>, Mistake> {
    if !channel.is_of_this_process() {
        return Err(FORKED);
    }
    match channel.element() {
        Element::Fixed {
            size: expected,
            drop,
            ..
        } if *expected == size => Ok(*drop),
        Element::Fixed { .. } => Err(WRONG_SIZE),
        Element::Object => Err(OF_OBJECTS),
        Element::Bytes | Element::Array(_) => Err(NOT_BYTES),
    }
}

#[inline]
fn bytes_of(channel: &TypedChannel) -> Result<(), Mistake> {
    if !channel.is_of_this_process() {
        return Err(FORKED);
    }
    match channel.element() {
        Element::Bytes | Element::Array(_) => Ok(()),
        Element::Fixed { .. } | Element::Object => Err(NOT_BYTES),
    }
}

/// # Safety
/// `size` bytes at `data` must be readable.
#[inline]
unsafe fn slice<'a>(data: *const c_void, size: usize) -> &'a [u8] {
    if size == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(data.cast(), size) }
}

pub(crate) unsafe extern "C" fn send(
    pointer: Pointer,
    value: *const c_void,
    size: usize,
    timeout_ns: i64,
) -> c_int {
    let until = Until::within(timeout_ns);
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(until);
    };
    match fixed(channel, size) {
        Ok(drop) => {
            // SAFETY: what the header asks handlers for.
            let bytes = unsafe { slice(value, size) };
            // SAFETY: the code that has made the channel says how its values are freed.
            let packed = unsafe { Packed::owned(bytes, drop) };
            send_packed(channel.raw(), packed, until)
        }
        Err(mistake) => misuse(mistake),
    }
}

/// Sends a value that stays the caller's if it is not sent.
#[inline]
fn send_packed(channel: &RawChannel, packed: Packed, until: Until) -> c_int {
    let mut operation = Send(channel, Some(Value::Packed(packed)));
    let result = wait::perform_lone(&mut operation, until);
    if let Some(unsent) = operation.1 {
        unsent.keep();
    }
    match result {
        Ok(Completion::Transferred) => OK,
        Ok(Completion::Closed) => CLOSED,
        Err(reason) => interrupted(reason),
    }
}

pub(crate) unsafe extern "C" fn receive(
    pointer: Pointer,
    value: *mut c_void,
    size: usize,
    timeout_ns: i64,
) -> c_int {
    let until = Until::within(timeout_ns);
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(until);
    };
    if let Err(mistake) = fixed(channel, size) {
        // Without a place for it any size will do.
        if mistake != WRONG_SIZE || !value.is_null() {
            return misuse(mistake);
        }
    }
    let mut operation = Receive(channel.raw(), None);
    let result = wait::perform_lone(&mut operation, until);
    if let Some(received) = operation.1 {
        // SAFETY: what the header asks handlers for: a place for `size` bytes, or null.
        unsafe { unpack(received, value, size) };
        return OK;
    }
    if !value.is_null() {
        // SAFETY: what the header asks handlers for: a place for `size` bytes.
        unsafe { ptr::write_bytes(value.cast::<u8>(), 0, size) };
    }
    match result {
        Ok(_) => CLOSED,
        Err(reason) => interrupted(reason),
    }
}

/// Writes a value to its receiver's place; without one it is freed.
///
/// # Safety
/// `place` must be null or have room for `size` bytes.
#[inline]
unsafe fn unpack(received: Value, place: *mut c_void, size: usize) {
    let Value::Packed(mut packed) = received else {
        return;
    };
    if place.is_null() || packed.bytes().len() != size {
        return;
    }
    packed.release();
    // SAFETY: the caller's; a value and a place of native code do not overlap.
    unsafe { ptr::copy_nonoverlapping(packed.bytes().as_ptr(), place.cast(), size) };
}

pub(crate) unsafe extern "C" fn send_bytes(
    pointer: Pointer,
    data: *const c_void,
    size: usize,
    timeout_ns: i64,
) -> c_int {
    let until = Until::within(timeout_ns);
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(until);
    };
    match bytes_of(channel) {
        Ok(()) => {
            // SAFETY: what the header asks handlers for.
            let packed = Packed::copied(unsafe { slice(data, size) });
            send_value(channel.raw(), Value::Packed(packed), until)
        }
        Err(mistake) => misuse(mistake),
    }
}

/// A copy of `bytes` in memory that `citius_free` frees.
pub(crate) fn to_malloc(bytes: &[u8]) -> Bytes {
    let data = interpreter().allocate(bytes.len().max(1));
    if data.is_null() {
        return Bytes { data, size: 0 };
    }
    // SAFETY: the memory is new and large enough.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
    Bytes {
        data,
        size: bytes.len(),
    }
}

/// # Safety
/// `memory` is what `to_malloc` has given out, or null.
pub(crate) unsafe fn free(memory: *mut c_void) {
    if let Some(memory) = NonNull::new(memory) {
        // SAFETY: the caller's.
        unsafe { interpreter().free(memory) };
    }
}

pub(crate) unsafe extern "C" fn receive_bytes(
    pointer: Pointer,
    place: *mut Bytes,
    timeout_ns: i64,
) -> c_int {
    let until = Until::within(timeout_ns);
    // SAFETY: what the header asks handlers for.
    let Some(place) = (unsafe { place.as_mut() }) else {
        return misuse(c"it receives bytes to nowhere");
    };
    *place = Bytes {
        data: ptr::null_mut(),
        size: 0,
    };
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(until);
    };
    if let Err(mistake) = bytes_of(channel) {
        return misuse(mistake);
    }
    match receive_value(channel.raw(), until) {
        Ok(Value::Packed(packed)) => {
            *place = to_malloc(packed.bytes());
            OK
        }
        Ok(Value::Object(_)) => misuse(NOT_BYTES),
        Err(code) => code,
    }
}

pub(crate) unsafe extern "C" fn send_object(
    pointer: Pointer,
    object: *mut c_void,
    timeout_ns: i64,
) -> c_int {
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(Until::within(timeout_ns));
    };
    if let Some(mistake) = no_objects(channel) {
        return misuse(mistake);
    }
    let Some(object) = NonNull::new(object) else {
        return misuse(NO_OBJECT);
    };
    interpreter().share(object);
    // SAFETY: an object, by what the header asks for; the reference was just made.
    let object = unsafe { Object::from_raw(object) };
    send_value(
        channel.raw(),
        Value::Object(object),
        Until::within(timeout_ns),
    )
}

pub(crate) unsafe extern "C" fn receive_object(
    pointer: Pointer,
    place: *mut *mut c_void,
    timeout_ns: i64,
) -> c_int {
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return never(Until::within(timeout_ns));
    };
    if let Some(mistake) = no_objects(channel) {
        return misuse(mistake);
    }
    match receive_value(channel.raw(), Until::within(timeout_ns)) {
        Ok(Value::Object(object)) => {
            // SAFETY: what the header asks handlers for.
            unsafe { place.write(object.into_raw().as_ptr()) };
            OK
        }
        Ok(Value::Packed(_)) => misuse(NOT_OBJECTS),
        Err(code) => code,
    }
}

fn no_objects(channel: &TypedChannel) -> Option<Mistake> {
    if !channel.is_of_this_process() {
        return Some(FORKED);
    }
    if !matches!(channel.element(), Element::Object) {
        return Some(NOT_OBJECTS);
    }
    (!interpreter().is_attached()).then_some(NO_GIL)
}

pub(crate) unsafe extern "C" fn close(pointer: Pointer) -> c_int {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return misuse(c"it closes a channel that is NULL");
    };
    if !channel.is_of_this_process() {
        return misuse(FORKED);
    }
    let closed = super::green::with_current(|green| match green.resident() {
        Some(resident) => channel.raw().close_as(resident),
        None => channel.raw().close(),
    });
    match closed.unwrap_or_else(|| channel.raw().close()) {
        Ok(()) => OK,
        Err(AlreadyClosed) => CLOSED,
    }
}

pub(crate) unsafe extern "C" fn count(pointer: Pointer, what: c_int) -> usize {
    // SAFETY: a reference of the caller's, or null.
    let Some(channel) = (unsafe { pointer.as_ref() }) else {
        return 0;
    };
    match what {
        0 => channel.raw().len(),
        1 => channel.raw().capacity(),
        2 => match channel.element() {
            Element::Fixed { size, .. } => *size,
            _ => 0,
        },
        3 => channel.raw().waiting().0,
        4 => channel.raw().waiting().1,
        5 => {
            // SAFETY: a reference of the caller's.
            let channel = unsafe { borrow(pointer) };
            channel.references()
        }
        _ => 0,
    }
}

// --- select ---------------------------------------------------------------------------------------

/// A case as native code writes it.
type NativeCase = citius_abi::Case<Objects>;

const SEND: i32 = 1;
const RECEIVE: i32 = 0;

type Cases<'a> = SmallVec<[Case<&'a RawChannel, Value>; 4]>;

pub(crate) unsafe extern "C" fn select_one(
    cases: *mut NativeCase,
    count: usize,
    timeout_ns: i64,
) -> c_int {
    citius_goroutine::require_stack(wait::STACK_BYTES);
    let until = Until::within(timeout_ns);
    let cases: &mut [NativeCase] = if count == 0 {
        &mut []
    } else {
        // SAFETY: what the header asks handlers for.
        unsafe { std::slice::from_raw_parts_mut(cases, count) }
    };
    let mut operations = Cases::new();
    for case in cases.iter() {
        // SAFETY: what the header asks handlers for: each case names a channel that is not freed, and a place for its values.
        match unsafe { operation(case) } {
            Ok(operation) => operations.push(operation),
            Err(mistake) => {
                keep_all(&mut operations);
                return -misuse(mistake);
            }
        }
    }
    if until == Until::Forever && cases.iter().all(|case| case.chan.is_null()) {
        return -never(until);
    }
    let result = wait::perform(&mut Select(&mut operations), until);
    keep_all(&mut operations);
    match result {
        Ok(outcome) => {
            let case = &mut cases[outcome.case];
            // SAFETY: what the header asks handlers for: the case's places are writable until the call returns.
            unsafe { conclude(case, outcome) }
        }
        Err(Interrupted::TimedOut) => -TIMEOUT,
        Err(reason) => -interrupted(reason),
    }
}

/// Values that were not sent are their senders'.
fn keep_all(operations: &mut Cases<'_>) {
    for operation in operations {
        if let Case::Send(_, value) = operation
            && let Some(unsent) = value.take()
        {
            unsent.keep();
        }
    }
}

/// # Safety
/// The pointers of the case are as the header asks for.
unsafe fn operation<'a>(case: &NativeCase) -> Result<Case<&'a RawChannel, Value>, Mistake> {
    // SAFETY: a reference of the caller's, or null.
    let channel: Option<&'a TypedChannel> = unsafe { case.chan.as_ref() };
    let drop = match channel {
        None => None,
        Some(channel) => match fixed(channel, case.size) {
            Err(mistake)
                if mistake == WRONG_SIZE && case.value.is_null() && case.operation == RECEIVE =>
            {
                None
            }
            checked => checked?,
        },
    };
    let raw = channel.map(TypedChannel::raw);
    match case.operation {
        RECEIVE => Ok(Case::Receive(raw)),
        SEND => {
            // SAFETY: the caller's.
            let bytes = unsafe { slice(case.value, if channel.is_some() { case.size } else { 0 }) };
            // SAFETY: the code that has made the channel says how its values are freed.
            let packed = unsafe { Packed::owned(bytes, drop) };
            Ok(Case::Send(raw, Some(Value::Packed(packed))))
        }
        _ => Err(c"a case of its select is neither CITIUS_SEND nor CITIUS_RECEIVE"),
    }
}

/// # Safety
/// As for `operation`.
unsafe fn conclude(case: &mut NativeCase, outcome: Outcome) -> c_int {
    let index = c_int::try_from(outcome.case).unwrap_or(c_int::MAX);
    case.ok = 1;
    match outcome.event {
        Event::Received(value) => {
            // SAFETY: the caller's.
            unsafe { unpack(value, case.value, case.size) };
        }
        Event::Drained => {
            case.ok = 0;
            if !case.value.is_null() {
                // SAFETY: the caller's.
                unsafe { ptr::write_bytes(case.value.cast::<u8>(), 0, case.size) };
            }
        }
        Event::Sent => {}
        Event::Refused(value) => {
            value.keep();
            case.ok = 0;
            return -CLOSED;
        }
    }
    index
}

// --- the interpreter ---------------------------------------------------------------------------------------

pub(crate) unsafe extern "C" fn to_python(pointer: Pointer) -> *mut c_void {
    if pointer.is_null() || !interpreter().is_attached() {
        return ptr::null_mut();
    }
    // SAFETY: a reference of the caller's.
    let channel = (*unsafe { borrow(pointer) }).clone();
    interpreter().object_of_channel(channel)
}

pub(crate) unsafe extern "C" fn from_python(object: *mut c_void) -> Pointer {
    let Some(object) = NonNull::new(object) else {
        return ptr::null();
    };
    if !interpreter().is_attached() {
        return ptr::null();
    }
    interpreter()
        .channel_of_object(object)
        .map_or(ptr::null(), into_pointer)
}

const _: () = assert!(MISUSE == 2, "as the header says");
