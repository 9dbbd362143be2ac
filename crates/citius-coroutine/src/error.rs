//! Why there is no stack.

use std::fmt;

/// Why there is no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// So many are in use: the limit of the pool.
    Limit(usize),
    /// The kernel's error number.
    NoMemory(i32),
    /// The kernel needs a mapping for each guard, and the process has nearly as many as it may have.
    TooManyMappings {
        /// `vm.max_map_count`
        map_count_max: usize,
    },
    /// This system or processor has no coroutines here.
    Unsupported,
}

impl fmt::Display for StackError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(max) => write!(
                formatter,
                "{max} goroutines are running or waiting, as many as --goroutines-max permits"
            ),
            Self::NoMemory(error) => {
                let error = std::io::Error::from_raw_os_error(*error);
                write!(formatter, "there is no memory for another stack: {error}")
            }
            Self::TooManyMappings { map_count_max } => write!(
                formatter,
                "this kernel needs a memory mapping for the guard of each stack, and vm.max_map_count permits \
                 {map_count_max}: raise it with sysctl, or use Linux 6.13 or later, which needs none"
            ),
            Self::Unsupported => {
                formatter.write_str("goroutines of compiled code need Linux on x86-64 or aarch64")
            }
        }
    }
}

impl std::error::Error for StackError {}
