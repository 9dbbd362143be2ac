//! Every rule that a form can break, as one flat list.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $status:literal, $text:literal;)+) => {
        /// A broken rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            /// All faults, so that a test can demand a case for each.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The status of the response to it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)+ }
            }

            /// What was broken: lower case, no full stop.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

faults! {
    /// RFC 2046 §5.1.1: 1 to 70 characters of ASCII, none of them a control character.
    Boundary = 400, "multipart/form-data needs a boundary of 1 to 70 characters";
    /// The body has ended, and no delimiter was found.
    NoDelimiter = 400, "the multipart body lacks its boundary";
    /// The body has ended without the delimiter that ends a form.
    Unfinished = 400, "the multipart body ends before its last delimiter";
    /// RFC 2046 §5.1.1: a delimiter is followed by white space and a line end, or by `--`.
    DelimiterSyntax = 400, "a multipart delimiter is followed by something other than a line end";
    /// A part's header section is longer than the limit.
    HeadTooLong = 400, "the header section of a part is too long or has no end";
    /// A line of a part's header section is no `name: value`.
    FieldSyntax = 400, "a line in the header section of a part is not a name, a colon and a value";
    /// RFC 7578 §4.2: each part has one `Content-Disposition: form-data` with a name.
    Disposition = 400, "a part needs one `Content-Disposition: form-data; name=\"…\"`";
    /// RFC 7578 §4.2: senders do not write `filename*`, and this one says nothing else.
    FileName = 400, "the name of a file is in a `filename*` that is not UTF-8 or Latin-1, and there is no `filename`";
    /// RFC 7578 §4.7: parts are not encoded.
    TransferEncoding = 400, "a part has a Content-Transfer-Encoding, which forms do without";
    /// The name of a field, or of a file, is longer than the limit.
    NameTooLong = 400, "the name of a form field or of its file is too long";
    /// More fields than the limit.
    TooManyFields = 413, "the form has too many fields";
    /// More files than the limit.
    TooManyFiles = 413, "the form has too many files";
    /// Text values are longer than the limit.
    TextTooLong = 413, "the text fields of the form are too long";
    /// A file is longer than the limit.
    FileTooLong = 413, "a file of the form is too long";
}
