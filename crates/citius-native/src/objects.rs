//! What the pointers of `citius.h` to channels, wait groups and contexts lead to in the server.

use citius_abi::RuntimeObjects;

use crate::channel::TypedChannel;
use crate::context::Context;
use crate::group::Group;

/// Those of goroutines and channels.
pub struct Objects;

impl RuntimeObjects for Objects {
    type Chan = TypedChannel;
    type WaitGroup = Group;
    type Context = Context;
}
