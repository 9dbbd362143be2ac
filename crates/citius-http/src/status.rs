//! Status codes and their reason phrases (RFC 9110 §15): a number in, a phrase or a class out.
//!
//! The table of phrases is one pass over one input, and longer than other functions.

/// A status code from 100 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

impl Status {
    /// 200.
    pub const OK: Self = Self(200);
    /// 204.
    pub const NO_CONTENT: Self = Self(204);
    /// 400.
    pub const BAD_REQUEST: Self = Self(400);
    /// 500.
    pub const INTERNAL_SERVER_ERROR: Self = Self(500);

    /// The status `code`, or `None` outside 100…599.
    pub const fn new(code: u16) -> Option<Self> {
        if code >= 100 && code <= 599 {
            Some(Self(code))
        } else {
            None
        }
    }

    /// For literals only.
    ///
    /// # Panics
    /// At compile time, for a code outside 100…599.
    pub const fn from_const(code: u16) -> Self {
        match Self::new(code) {
            Some(status) => status,
            None => panic!("status codes run from 100 to 599"),
        }
    }

    /// The number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Whether a final response is still to come (1xx).
    pub const fn is_informational(self) -> bool {
        self.0 < 200
    }

    /// Whether the request was successful (2xx).
    pub const fn is_successful(self) -> bool {
        matches!(self.0, 200..=299)
    }

    /// Whether a response with this status never has a body (RFC 9112 §6.3 rule 1).
    pub const fn has_no_body(self) -> bool {
        self.is_informational() || self.0 == 204 || self.0 == 304
    }

    /// The reason phrase; empty for codes without a registered one.
    pub const fn reason(self) -> &'static str {
        match self.0 {
            100 => "Continue",
            101 => "Switching Protocols",
            102 => "Processing",
            103 => "Early Hints",
            200 => "OK",
            201 => "Created",
            202 => "Accepted",
            203 => "Non-Authoritative Information",
            204 => "No Content",
            205 => "Reset Content",
            206 => "Partial Content",
            207 => "Multi-Status",
            208 => "Already Reported",
            226 => "IM Used",
            300 => "Multiple Choices",
            301 => "Moved Permanently",
            302 => "Found",
            303 => "See Other",
            304 => "Not Modified",
            305 => "Use Proxy",
            307 => "Temporary Redirect",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            401 => "Unauthorized",
            402 => "Payment Required",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            406 => "Not Acceptable",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            409 => "Conflict",
            410 => "Gone",
            411 => "Length Required",
            412 => "Precondition Failed",
            413 => "Content Too Large",
            414 => "URI Too Long",
            415 => "Unsupported Media Type",
            416 => "Range Not Satisfiable",
            417 => "Expectation Failed",
            418 => "I'm a Teapot",
            421 => "Misdirected Request",
            422 => "Unprocessable Content",
            423 => "Locked",
            424 => "Failed Dependency",
            425 => "Too Early",
            426 => "Upgrade Required",
            428 => "Precondition Required",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            451 => "Unavailable For Legal Reasons",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            506 => "Variant Also Negotiates",
            507 => "Insufficient Storage",
            508 => "Loop Detected",
            511 => "Network Authentication Required",
            _ => "",
        }
    }
}
