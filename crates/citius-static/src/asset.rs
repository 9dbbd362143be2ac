//! A file as responses need it, and the assets that are remembered for a moment.
//!
//! An asset is everything about one version of a file that every response repeats: its fields, its media
//! type, its precompressed variants, the bytes of a small one. Making one costs four opens, so it is kept
//! for `files_cached_ms` and made anew after that, whether or not the file has changed. What is not there is
//! not remembered: a scan for names must not push out what is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use citius_http::coding::Coding;
use citius_http::date::imf_fixdate;
use citius_http::{Fields, Limits, Millis, Payload};
use citius_reactor::{Errno, File, Files};

use crate::beneath::Directory;
use crate::conditional::Validators;
use crate::media;

/// One version of a file, with the variants of it that are there.
#[derive(Debug)]
pub struct Asset {
    pub(crate) media_type: &'static [u8],
    plain: Variant,
    coded: Vec<(Coding, Variant)>,
}

/// One representation: the file itself, or a precompressed copy.
#[derive(Debug)]
pub(crate) struct Variant {
    content: Content,
    length: u64,
    modified_s: i64,
    etag: Vec<u8>,
    /// What a 304 says.
    pub(crate) unchanged: Fields,
    /// What a 200 and a 206 say besides.
    pub(crate) fields: Fields,
}

#[derive(Debug)]
enum Content {
    /// All of it; the descriptor is free again.
    Memory(Bytes),
    Open(Arc<File>),
}

/// What the responses of a mount say of themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) cache_control: Option<String>,
    pub(crate) precompressed: bool,
}

impl Asset {
    /// The asset of an open file that lies in no mount; its `name` suggests its type.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(file: Arc<File>, name: &[u8], files: &Files) -> Result<Self, Errno> {
        Self::make(file, name, None, files, &Manner::default())
    }

    /// Makes the asset of the open `file` at `path`.
    pub(crate) fn make(
        file: Arc<File>,
        path: &[u8],
        directory: Option<&Directory>,
        files: &Files,
        manner: &Manner,
    ) -> Result<Self, Errno> {
        let modified = modified(&file);
        let mut coded = Vec::new();
        for coding in Coding::ALL {
            let Some(directory) = directory.filter(|_| manner.precompressed) else {
                break;
            };
            if path.ends_with(suffix(coding)) {
                continue;
            }
            let sibling = [path, suffix(coding)].concat();
            let variant = directory
                .open_below(&sibling)
                .and_then(|opened| files.adopt(opened, &String::from_utf8_lossy(&sibling)));
            match variant {
                // One that is older was made of something else.
                Ok(variant) if self::modified(&variant) >= modified => {
                    coded.push((coding, variant));
                }
                Err(Errno::NFILE) => return Err(Errno::NFILE),
                Ok(_) | Err(_) => {}
            }
        }
        let varies = !coded.is_empty();
        let coded = coded
            .into_iter()
            .map(|(coding, file)| Ok((coding, Variant::make(file, Some(coding), varies, manner)?)))
            .collect::<Result<_, Errno>>()?;
        Ok(Self {
            media_type: media::of(path),
            plain: Variant::make(file, None, varies, manner)?,
            coded,
        })
    }

    /// Whether there is a choice to be made.
    pub(crate) fn varies(&self) -> bool {
        !self.coded.is_empty()
    }

    /// The codings there are.
    pub(crate) fn codings(&self) -> impl Iterator<Item = Coding> {
        self.coded.iter().map(|(coding, _)| *coding)
    }

    /// The variant in a coding there is, or the file itself.
    pub(crate) fn variant(&self, coding: Option<Coding>) -> &Variant {
        self.coded
            .iter()
            .find(|(known, _)| Some(*known) == coding)
            .map_or(&self.plain, |(_, variant)| variant)
    }

    /// Bytes of content in memory.
    fn held_bytes(&self) -> usize {
        let variants = self.coded.iter().map(|(_, variant)| variant);
        variants
            .chain([&self.plain])
            .map(|variant| match &variant.content {
                Content::Memory(bytes) => bytes.len(),
                Content::Open(_) => 0,
            })
            .sum()
    }
}

impl Variant {
    fn make(
        file: Arc<File>,
        coding: Option<Coding>,
        varies: bool,
        manner: &Manner,
    ) -> Result<Self, Errno> {
        let (length, (modified_s, modified_ns)) = (file.len(), modified(&file));
        let suffix = coding.map_or_else(String::new, |coding| format!("-{}", coding.token()));
        let stamp = i128::from(modified_s) * 1_000_000_000 + i128::from(modified_ns);
        let etag = format!("\"{stamp:x}-{length:x}{suffix}\"").into_bytes();
        let mut unchanged = Fields::default();
        let mut say = |name: &[u8], value: &[u8]| {
            unchanged
                .push(name, value)
                .expect("valid, for the mount's own values were checked");
        };
        say(b"etag", &etag);
        say(
            b"last-modified",
            &imf_fixdate(modified_s.max(0).unsigned_abs()),
        );
        if varies {
            say(b"vary", b"accept-encoding");
        }
        if let Some(cache_control) = &manner.cache_control {
            say(b"cache-control", cache_control.as_bytes());
        }
        let mut fields = unchanged.clone();
        if let Some(coding) = coding {
            fields
                .push(b"content-encoding", coding.token().as_bytes())
                .expect("a token");
        }
        fields.push(b"accept-ranges", b"bytes").expect("a token");
        let content = if length < File::SENT_BYTES_MIN {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            file.read_exact(0, &mut bytes)?;
            Content::Memory(Bytes::from(bytes))
        } else {
            Content::Open(file)
        };
        Ok(Self {
            content,
            length,
            modified_s,
            etag,
            unchanged,
            fields,
        })
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: &self.etag,
            modified_s: self.modified_s,
        }
    }

    /// `length` bytes from `offset` on, which are there.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter by now.
    pub(crate) fn payload(&self, offset: u64, length: u64) -> Result<Payload<'_>, Errno> {
        match &self.content {
            Content::Open(file) => file.payload(offset, length),
            Content::Memory(bytes) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let held = bytes.get(place(offset)..place(offset.saturating_add(length)));
                held.map(Payload::Copied).ok_or(Errno::NODATA)
            }
        }
    }
}

/// The ending of a precompressed copy's name.
fn suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

/// Seconds and nanoseconds since 1970.
fn modified(file: &File) -> (i64, u64) {
    let status = file.status();
    (status.modified_s, status.modified_ns.into())
}

/// Assets by their paths below the directory, each for a moment.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    assets: HashMap<Vec<u8>, (Millis, Arc<Asset>)>,
    held_bytes: usize,
}

impl Cache {
    /// Bytes of content kept at most; above it all is forgotten and begun anew.
    const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;

    /// The asset of `path` if it is young enough.
    pub(crate) fn find(&self, path: &[u8], now: Millis, limits: &Limits) -> Option<Arc<Asset>> {
        let (made_at, asset) = self.assets.get(path)?;
        let age = now.saturating_sub(*made_at);
        (age < limits.files_cached_ms).then(|| Arc::clone(asset))
    }

    /// Remembers it.
    pub(crate) fn keep(&mut self, path: &[u8], asset: &Arc<Asset>, now: Millis, limits: &Limits) {
        if limits.files_cached_max == 0 || limits.files_cached_ms == 0 {
            return;
        }
        let is_new = !self.assets.contains_key(path);
        if self.held_bytes > Self::HELD_BYTES_MAX
            || is_new && self.assets.len() >= limits.files_cached_max as usize
        {
            self.clear();
        }
        self.held_bytes += asset.held_bytes();
        let made = (now, Arc::clone(asset));
        if let Some((_, before)) = self.assets.insert(path.to_vec(), made) {
            self.held_bytes -= before.held_bytes();
        }
    }

    /// Forgets all assets; a file closes when no response sends from it any more.
    pub(crate) fn clear(&mut self) {
        self.assets.clear();
        self.held_bytes = 0;
    }
}
