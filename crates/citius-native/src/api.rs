//! The functions of `citius_api` that the runtime has, in the order of the header.

use citius_abi::RuntimeApi;

use crate::objects::Objects;
use crate::{chan, codes, context_functions, go_functions, sync};

/// Those of this runtime.
pub const RUNTIME_API: RuntimeApi<Objects> = RuntimeApi {
    go: go_functions::go,
    yield_now: go_functions::yield_now,
    sleep_until: go_functions::sleep_until,
    now: go_functions::now_ns,
    in_goroutine: go_functions::in_goroutine,
    mistake: codes::mistake,
    free: go_functions::free,
    chan_make: chan::make,
    chan_find: chan::find,
    chan_retain: chan::retain,
    chan_release: chan::release,
    chan_send: chan::send,
    chan_receive: chan::receive,
    chan_send_bytes: chan::send_bytes,
    chan_receive_bytes: chan::receive_bytes,
    chan_send_object: chan::send_object,
    chan_receive_object: chan::receive_object,
    chan_close: chan::close,
    chan_count: chan::count,
    chan_to_python: chan::to_python,
    chan_from_python: chan::from_python,
    select: chan::select_one,
    wait_group_make: sync::group_make,
    wait_group_retain: sync::group_retain,
    wait_group_release: sync::group_release,
    wait_group_add: sync::group_add,
    wait_group_wait: sync::group_wait,
    mutex_lock: sync::mutex_lock,
    mutex_unlock: sync::mutex_unlock,
    mutex_destroy: sync::mutex_destroy,
    once: sync::once,
    context_current: context_functions::current,
    context_make: context_functions::make,
    context_retain: context_functions::retain,
    context_release: context_functions::release,
    context_cancel: context_functions::cancel,
    context_error: context_functions::error,
    context_deadline: context_functions::deadline,
    context_done: context_functions::done,
    context_use: context_functions::use_here,
    cxx_globals: go_functions::cxx_globals,
};
