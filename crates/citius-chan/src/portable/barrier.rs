//! Where no thread can make the others pass a barrier nothing is confined.

pub(crate) fn is_there() -> bool {
    false
}

pub(crate) fn pass_on_all_threads() {}
