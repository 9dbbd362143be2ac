//! Mounts, and the responses of their files.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use citius_http::coding::Accepted;
use citius_http::{Action, Fault, Fields, Head, Method, Payload, ResponseHead, Status};
use citius_reactor::{Errno, Files, Reply};

use crate::asset::{Asset, Cache, Manner, Variant};
use crate::beneath::Directory;
use crate::conditional::{self, Verdict};
use crate::path::{self, Below};
use crate::range::{self, Piece, Wanted};

/// How a directory is served.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent permissions"
)]
pub struct MountOptions {
    /// Paths below this are served: `/assets`, or empty for all.
    pub prefix: String,
    /// From where.
    pub directory: PathBuf,
    /// The file that is served for a directory, such as `index.html`; 404 without.
    pub index: Option<String>,
    /// The value of `Cache-Control`.
    pub cache_control: Option<String>,
    /// Whether names that begin with a dot are served.
    pub dotfiles: bool,
    /// Whether symbolic links are followed, as long as they stay inside.
    pub symlinks: bool,
    /// Whether `name.br`, `name.zst` and `name.gz` are sent in place of `name` to those who accept it.
    pub precompressed: bool,
    /// Whether what is not there goes on to the application, in place of a 404.
    pub falls_through: bool,
}

/// One directory that is served.
#[derive(Debug)]
pub struct Mount {
    options: MountOptions,
    manner: Manner,
    directory: Directory,
    cache: Cache,
}

/// All of them; the longest prefix comes first.
#[derive(Debug, Default)]
pub struct Mounts(Vec<Mount>);

/// What was sent, for the log.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// With which status.
    pub status: Status,
    /// Bytes of the body; 0 for a HEAD request.
    pub body_bytes: u64,
    /// What was wrong with the file, if anything.
    pub error: Option<Errno>,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A file.
    Asset(Arc<Asset>),
    /// A directory whose path lacks its slash.
    Directory,
    /// Nothing that is served.
    Nothing,
    /// Something that cannot be opened now.
    Failed(Errno),
}

/// Where the response of a file goes.
pub trait Outlet {
    /// How many ranges of one request are served.
    fn ranges_max(&self) -> u32;
    /// Sends a part of the response.
    fn send(&mut self, action: Action<'_>);
    /// Has the response left as it is: it is not to be compressed.
    fn keep_as_is(&mut self) {}
}

impl Outlet for Reply<'_> {
    fn ranges_max(&self) -> u32 {
        self.limits().ranges_max
    }

    fn send(&mut self, action: Action<'_>) {
        Self::send(self, action).expect(VALID);
    }

    fn keep_as_is(&mut self) {
        Self::keep_as_is(self);
    }
}

/// What an application says of a file that it sends.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Of which type it is, if not of the type that its name suggests.
    pub content_type: Option<&'a [u8]>,
    /// Fields of the response; what a file says of itself takes precedence.
    pub fields: &'a Fields,
}

impl Said<'_> {
    const NOTHING: Said<'static> = Said {
        content_type: None,
        fields: &Fields::EMPTY,
    };

    /// The fields of a file and these.
    fn and(&self, of_file: &Fields) -> Fields {
        let mut fields = of_file.clone();
        for (name, value) in self.fields.iter() {
            let is_said = of_file
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name));
            // RFC 9110 §12.5.5: several lines of `Vary` add up.
            if !is_said || name.eq_ignore_ascii_case(b"vary") {
                fields.push(name, value).expect("a field that was one");
            }
        }
        fields
    }
}

impl Mount {
    /// A mount; its directory is opened now.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn new(options: MountOptions) -> Result<Self, String> {
        let manner = Manner {
            cache_control: options.cache_control.clone(),
            precompressed: options.precompressed,
        };
        if let Some(value) = &options.cache_control
            && !citius_http::fields::is_value(value.as_bytes())
        {
            return Err(format!("cache-control {value:?} has a control character"));
        }
        if let Some(index) = &options.index
            && (index.is_empty() || index.contains('/'))
        {
            return Err(format!("index {index:?} is not the name of a file"));
        }
        let directory = Directory::open(&options.directory, options.symlinks).map_err(|error| {
            let error = std::io::Error::from(error);
            format!("cannot serve {}: {error}", options.directory.display())
        })?;
        Ok(Self {
            options,
            manner,
            directory,
            cache: Cache::default(),
        })
    }

    /// What the path of a request leads to, opened anew; for responses that pass an application's code.
    pub fn look_up(&self, encoded: &[u8], files: &Files) -> Found {
        let decoded = path::decode(encoded);
        let rest = decoded
            .as_deref()
            .and_then(|decoded| path::strip(decoded, self.options.prefix.as_bytes()));
        let below = rest.and_then(|rest| path::below(rest, self.options.dotfiles));
        match below.as_ref().and_then(|below| self.indexed(below)) {
            Some(path) => self.load(&path, files),
            None => Found::Nothing,
        }
    }

    /// The path with the name of the index, if it is a directory's; `None` for one without an index.
    fn indexed<'a>(&self, below: &'a Below<'_>) -> Option<Cow<'a, [u8]>> {
        if !below.is_directory {
            return Some(Cow::Borrowed(&below.path));
        }
        let index = self.options.index.as_deref()?;
        let slash: &[u8] = if below.path.is_empty() { b"" } else { b"/" };
        Some(Cow::Owned([&below.path, slash, index.as_bytes()].concat()))
    }

    fn find(&mut self, below: &Below<'_>, files: &Files, reply: &Reply<'_>) -> Found {
        let Some(path) = self.indexed(below) else {
            return Found::Nothing;
        };
        let path = &*path;
        let (now, limits) = (reply.now(), reply.limits());
        if let Some(asset) = self.cache.find(path, now, limits) {
            return Found::Asset(asset);
        }
        let mut found = self.load(path, files);
        if matches!(found, Found::Failed(Errno::NFILE | Errno::MFILE)) {
            // Perhaps it is we who hold too many.
            self.cache.clear();
            found = self.load(path, files);
        }
        if let Found::Asset(asset) = &found {
            self.cache.keep(path, asset, now, limits);
        }
        found
    }

    fn load(&self, path: &[u8], files: &Files) -> Found {
        let asset = self.directory.open_below(path).and_then(|opened| {
            let status = citius_reactor::status(&opened)?;
            if status.is_directory {
                return Err(Errno::ISDIR);
            }
            if !status.is_regular {
                return Err(Errno::NOENT);
            }
            let label = self.options.directory.join(&*String::from_utf8_lossy(path));
            let file = files.adopt(opened, &label.to_string_lossy())?;
            Asset::make(file, path, Some(&self.directory), files, &self.manner)
        });
        match asset {
            Ok(asset) => Found::Asset(Arc::new(asset)),
            Err(Errno::ISDIR) if self.options.index.is_some() => Found::Directory,
            Err(
                error @ (Errno::NFILE | Errno::MFILE | Errno::IO | Errno::NODATA | Errno::STALE),
            ) => Found::Failed(error),
            // Missing, forbidden and outside look alike, so that a client cannot tell which.
            Err(_) => Found::Nothing,
        }
    }
}

impl Mounts {
    /// All mounts of a server.
    pub fn new(mut mounts: Vec<Mount>) -> Self {
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.options.prefix.len()));
        Self(mounts)
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Responds to a request for a file; `None`, and nothing is sent, if the path is not below the mount.
    pub fn respond(&mut self, head: &Head, files: &Files, reply: &mut Reply<'_>) -> Option<Served> {
        let decoded = path::decode(head.path());
        // An escape that no file is named by is refused where it claims to be ours.
        let (decoded, is_named) = match &decoded {
            Some(decoded) => (&**decoded, true),
            None => (head.path(), false),
        };
        let (mount, rest) = self.0.iter_mut().find_map(|mount| {
            let rest = path::strip(decoded, mount.options.prefix.as_bytes())?;
            Some((mount, rest))
        })?;
        let falls_through = mount.options.falls_through;
        if !matches!(head.method, Method::Get | Method::Head) {
            return match head.method {
                _ if falls_through => None,
                Method::Options => Some(send_allowed(Status::NO_CONTENT, reply)),
                _ => Some(send_allowed(METHOD_NOT_ALLOWED, reply)),
            };
        }
        let below = path::below(rest, mount.options.dotfiles).filter(|_| is_named);
        let found = match &below {
            Some(below) => mount.find(below, files, reply),
            None => Found::Nothing,
        };
        match found {
            Found::Asset(asset) => Some(respond_with(&asset, head, Said::NOTHING, reply)),
            Found::Directory => Some(redirect(head, reply)),
            Found::Nothing if falls_through => None,
            Found::Nothing => Some(send_status(NOT_FOUND, &Fields::EMPTY, reply)),
            Found::Failed(error) => Some(send_failure(error, reply)),
        }
    }
}

/// Sends a file, or what of it the client asks for, or that the client has it.
///
/// # Panics
/// Never: the fields that it adds are digits.
pub fn respond_with(asset: &Asset, head: &Head, said: Said<'_>, reply: &mut impl Outlet) -> Served {
    let coding = asset
        .varies()
        .then(|| Accepted::of(head).choose(asset.codings()))
        .flatten();
    let variant = asset.variant(coding);
    let validators = variant.validators();
    match conditional::evaluate(head, validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => {
            let response = ResponseHead {
                status: NOT_MODIFIED,
                content_type: None,
                fields: &said.and(&variant.unchanged),
            };
            return respond(response, Payload::Copied(b""), reply);
        }
        Verdict::Failed => return send_status(PRECONDITION_FAILED, said.fields, reply),
    }
    match wanted(head, variant, reply.ranges_max()) {
        Wanted::Whole => send_whole(asset, variant, Status::OK, said, reply),
        Wanted::Nothing => {
            let mut fields = said.fields.clone();
            let range = format!("bytes */{}", variant.len());
            fields
                .push(b"content-range", range.as_bytes())
                .expect("digits");
            send_status(RANGE_NOT_SATISFIABLE, &fields, reply)
        }
        Wanted::Pieces(pieces) => {
            let sent = match pieces.as_slice() {
                [piece] => send_piece(asset, variant, *piece, said, reply),
                pieces => send_pieces(asset, variant, pieces, said, reply),
            };
            sent.unwrap_or_else(|error| send_failure(error, reply))
        }
    }
}

/// Sends a file with a status of the application's, whatever the client asks for.
///
/// # Panics
/// Never: the fields that it adds are digits.
pub fn respond_whole(
    asset: &Asset,
    status: Status,
    said: Said<'_>,
    reply: &mut impl Outlet,
) -> Served {
    send_whole(asset, asset.variant(None), status, said, reply)
}

fn send_whole(
    asset: &Asset,
    variant: &Variant,
    status: Status,
    said: Said<'_>,
    reply: &mut impl Outlet,
) -> Served {
    let response = ResponseHead {
        status,
        content_type: Some(said.content_type.unwrap_or(asset.media_type)),
        fields: &said.and(&variant.fields),
    };
    match variant.payload(0, variant.len()) {
        Ok(payload) => respond(response, payload, reply),
        Err(error) => send_failure(error, reply),
    }
}

fn wanted(head: &Head, variant: &Variant, ranges_max: u32) -> Wanted {
    let mut values = head
        .fields()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"range"))
        .map(|(_, value)| value);
    match (head.method, values.next(), values.next()) {
        // RFC 9110 §14.2: defined for GET alone.
        (Method::Get, Some(value), None)
            if conditional::if_range_holds(head, variant.validators()) =>
        {
            range::parse(value, variant.len(), ranges_max)
        }
        _ => Wanted::Whole,
    }
}

fn send_piece(
    asset: &Asset,
    variant: &Variant,
    (offset, length): Piece,
    said: Said<'_>,
    reply: &mut impl Outlet,
) -> Result<Served, Errno> {
    let payload = variant.payload(offset, length)?;
    let mut fields = said.and(&variant.fields);
    let range = content_range((offset, length), variant);
    fields
        .push(b"content-range", range.as_bytes())
        .expect("digits");
    let response = ResponseHead {
        status: PARTIAL_CONTENT,
        content_type: Some(said.content_type.unwrap_or(asset.media_type)),
        fields: &fields,
    };
    Ok(respond(response, payload, reply))
}

/// Several pieces, as `multipart/byteranges` (RFC 9110 §14.6).
fn send_pieces(
    asset: &Asset,
    variant: &Variant,
    pieces: &[Piece],
    said: Said<'_>,
    reply: &mut impl Outlet,
) -> Result<Served, Errno> {
    let boundary = boundary();
    let media_type = format!("multipart/byteranges; boundary={boundary}");
    let (mut parts, mut total) = (Vec::with_capacity(pieces.len()), 0);
    for &(offset, length) in pieces {
        let head = [
            format!("\r\n--{boundary}\r\ncontent-type: ").as_bytes(),
            said.content_type.unwrap_or(asset.media_type),
            b"\r\ncontent-range: ",
            content_range((offset, length), variant).as_bytes(),
            b"\r\n\r\n",
        ]
        .concat();
        total += head.len() as u64 + length;
        parts.push((head, variant.payload(offset, length)?));
    }
    let end = format!("\r\n--{boundary}--\r\n");
    total += end.len() as u64;
    let mut fields = said.and(&variant.fields);
    fields
        .push(b"content-length", total.to_string().as_bytes())
        .expect("a number");
    let response = ResponseHead {
        status: PARTIAL_CONTENT,
        content_type: Some(media_type.as_bytes()),
        fields: &fields,
    };
    reply.keep_as_is();
    reply.send(Action::Start(response));
    for (head, payload) in parts {
        reply.send(Action::Data(Payload::Copied(&head)));
        reply.send(Action::Data(payload));
    }
    reply.send(Action::Data(Payload::Copied(end.as_bytes())));
    reply.send(Action::End {
        trailers: &Fields::EMPTY,
    });
    Ok(Served {
        status: PARTIAL_CONTENT,
        body_bytes: total,
        error: None,
    })
}

/// What stands between pieces, another one for each response: it must not be in a piece (RFC 2046 §5.1.1), and who writes a file
/// may have seen earlier ones.
fn boundary() -> String {
    let half = || RandomState::new().hash_one(0);
    format!("citius-{:016x}{:016x}", half(), half())
}

fn content_range((offset, length): Piece, variant: &Variant) -> String {
    format!("bytes {offset}-{}/{}", offset + length - 1, variant.len())
}

/// To the path with its slash, so that relative links in the index lead below it.
fn redirect(head: &Head, reply: &mut Reply<'_>) -> Served {
    let mut fields = Fields::default();
    match fields.push(b"location", &head.other_slash()) {
        Ok(()) => send_status(MOVED_PERMANENTLY, &fields, reply),
        Err(_) => send_status(NOT_FOUND, &Fields::EMPTY, reply),
    }
}

fn send_allowed(status: Status, reply: &mut Reply<'_>) -> Served {
    let mut fields = Fields::default();
    fields
        .push(b"allow", b"GET, HEAD, OPTIONS")
        .expect("methods are tokens");
    send_status(status, &fields, reply)
}

/// The file system could not give what is there.
fn send_failure(error: Errno, reply: &mut impl Outlet) -> Served {
    let mut fields = Fields::default();
    let is_crowded = matches!(error, Errno::NFILE | Errno::MFILE);
    let status = if is_crowded {
        fields.push(b"retry-after", b"1").expect("a digit");
        Fault::Overloaded.status()
    } else {
        Status::INTERNAL_SERVER_ERROR
    };
    Served {
        error: Some(error),
        ..send_status(status, &fields, reply)
    }
}

fn send_status(status: Status, fields: &Fields, reply: &mut impl Outlet) -> Served {
    let mut response = ResponseHead {
        fields,
        ..ResponseHead::text(status)
    };
    let mut body = status.reason();
    if status.has_no_body() {
        (response.content_type, body) = (None, "");
    }
    respond(response, Payload::Copied(body.as_bytes()), reply)
}

fn respond(response: ResponseHead<'_>, body: Payload<'_>, reply: &mut impl Outlet) -> Served {
    let (status, body_bytes) = (response.status, body.len());
    reply.keep_as_is();
    reply.send(Action::Respond(response, body));
    Served {
        status,
        body_bytes,
        error: None,
    }
}

const VALID: &str = "checked fields, lengths as announced, and the request was just asked";
const PARTIAL_CONTENT: Status = Status::from_const(206);
const MOVED_PERMANENTLY: Status = Status::from_const(301);
const NOT_MODIFIED: Status = Status::from_const(304);
const NOT_FOUND: Status = Status::from_const(404);
const METHOD_NOT_ALLOWED: Status = Status::from_const(405);
const PRECONDITION_FAILED: Status = Status::from_const(412);
const RANGE_NOT_SATISFIABLE: Status = Status::from_const(416);
