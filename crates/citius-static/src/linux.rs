//! Linux only: opens what lies beneath a directory, and never anything else.
//!
//! `openat2` (Linux 5.6) holds a whole path inside in one call, symbolic links included. Where it is
//! missing or forbidden (old kernels, strict containers) the path is walked name by name with
//! `O_NOFOLLOW`, and symbolic links are then refused even if they are allowed otherwise: there would be
//! a moment between looking where one leads and going there.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use citius_reactor::open_flags;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, Result};

/// A directory, and how names below it are followed.
#[derive(Debug)]
pub(crate) struct Directory {
    root: OwnedFd,
    follows_symlinks: bool,
    /// `openat2` is not to be had here.
    must_walk: AtomicBool,
}

/// How often a path is tried again whose parts are being renamed at this moment.
const TRIES_MAX: usize = 8;

impl Directory {
    /// The directory at `path`, as it is now: what takes its place later is not seen.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open(path: &std::path::Path, follows_symlinks: bool) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::open(path, flags, Mode::empty())?,
            follows_symlinks,
            must_walk: AtomicBool::new(false),
        })
    }

    /// Opens `path` below the directory (empty: the directory itself) for reading, of whatever file type.
    ///
    /// # Errors
    /// Those of `open`; `ELOOP` and `EXDEV` for links that are not followed or lead outside.
    pub(crate) fn open_below(&self, path: &[u8]) -> Result<File> {
        let path = if path.is_empty() { b"." } else { path };
        if !self.must_walk.load(Ordering::Relaxed) {
            match self.resolve(path) {
                // EPERM: a filter of system calls that is older than the call.
                Err(Errno::NOSYS | Errno::PERM) => self.must_walk.store(true, Ordering::Relaxed),
                resolved => return Ok(resolved?.into()),
            }
        }
        Ok(self.walk(path)?.into())
    }

    fn resolve(&self, path: &[u8]) -> Result<OwnedFd> {
        let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        how.set(ResolveFlags::NO_SYMLINKS, !self.follows_symlinks);
        for _ in 0..TRIES_MAX {
            match openat2(&self.root, path, open_flags(), Mode::empty(), how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    fn walk(&self, path: &[u8]) -> Result<OwnedFd> {
        let (above, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let mut at: Option<OwnedFd> = None;
        for step in above.split(|&byte| byte == b'/').filter(|s| !s.is_empty()) {
            let here: BorrowedFd<'_> = at.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = Some(openat(here, step, flags, Mode::empty())?);
        }
        let here = at.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        openat(here, name, open_flags() | OFlags::NOFOLLOW, Mode::empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_two_ways_stay_inside_and_agree_without_links() {
        let top = std::env::temp_dir().join(format!("citius-beneath-{}", std::process::id()));
        let root = top.join("root");
        fs::create_dir_all(root.join("inner")).expect("a writable place");
        fs::write(top.join("secret"), "secret").expect("room");
        fs::write(root.join("inner/file"), "file").expect("room");
        for (link, target) in [
            ("out", "../secret"),
            ("absolute", "/etc/passwd"),
            ("up", ".."),
            ("in", "inner/file"),
            ("loop", "loop"),
        ] {
            symlink(target, root.join(link)).expect("a fresh name");
        }
        for (follows_symlinks, must_walk) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let directory = Directory::open(&root, follows_symlinks).expect("it exists");
            directory.must_walk.store(must_walk, Ordering::Relaxed);
            let opens = |path: &str| directory.open_below(path.as_bytes()).is_ok();
            assert!(opens("inner/file") && opens("") && opens("inner"));
            for outside in [
                "out",
                "absolute",
                "up",
                "up/secret",
                "loop",
                "none",
                "inner/file/x",
            ] {
                assert!(!opens(outside), "{outside} {follows_symlinks} {must_walk}");
            }
            let followed = directory.open_below(b"in").is_ok();
            assert_eq!(
                followed,
                follows_symlinks && !directory.must_walk.into_inner()
            );
        }
        fs::remove_dir_all(&top).expect("it is ours");
    }
}
