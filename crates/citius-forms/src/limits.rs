//! What one form may have. The defaults, with their origins, are those of `citius.FormLimits` in Python.

/// The limits of one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "limits end in _max, as those of the server do"
)]
pub struct Limits {
    /// Text fields, or pairs of a URL-encoded form. Exceeded: [`Fault::TooManyFields`](crate::Fault::TooManyFields).
    pub fields_max: u32,
    /// Files. Exceeded: [`Fault::TooManyFiles`](crate::Fault::TooManyFiles).
    pub files_max: u32,
    /// Bytes of one part's header section. Exceeded: [`Fault::HeadTooLong`](crate::Fault::HeadTooLong).
    pub part_head_bytes_max: u32,
    /// Bytes of the name of a field or file. Exceeded: [`Fault::NameTooLong`](crate::Fault::NameTooLong).
    pub name_bytes_max: u32,
    /// Bytes of all text values together. Exceeded: [`Fault::TextTooLong`](crate::Fault::TextTooLong).
    pub text_bytes_max: u64,
    /// Bytes of one file. Exceeded: [`Fault::FileTooLong`](crate::Fault::FileTooLong).
    pub file_bytes_max: u64,
}
