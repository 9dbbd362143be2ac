//! How applications are called: one file per interface, all over the same exchanges and answers.

pub(crate) mod native;
