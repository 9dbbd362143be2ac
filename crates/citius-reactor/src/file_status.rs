//! What the file system says of a file.

/// What the file system says of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// It is a regular file.
    pub is_regular: bool,
    /// It is a directory.
    pub is_directory: bool,
    /// Its number of bytes.
    pub bytes: u64,
    /// When it was changed last, in seconds since 1970.
    pub modified_s: i64,
    /// The nanoseconds of that time.
    pub modified_ns: u32,
}
