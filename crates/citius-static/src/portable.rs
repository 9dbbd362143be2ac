//! Systems other than Linux: opens what lies beneath a directory, by names that the system itself has resolved.
//!
//! A path is joined to the directory and resolved, and opened only if what comes out lies inside. With links refused, it must be
//! what was asked for, letter by letter: so a link, another case, a short name, a stream or a device of Windows is not found. There is
//! a moment between resolving and opening, in which a process that may write to the directory can put a link there; Linux has
//! none. This is for machines on which applications are developed.

use std::fs::File;
use std::io::Error;
use std::path::{Component, Path, PathBuf};

use citius_reactor::Errno;

/// A directory, and how names below it are followed.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    follows_symlinks: bool,
}

impl Directory {
    /// The directory at `path`.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open(path: &Path, follows_symlinks: bool) -> Result<Self, Errno> {
        let root = path.canonicalize().map_err(errno)?;
        if !root.is_dir() {
            return Err(Errno::NOTDIR);
        }
        Ok(Self {
            root,
            follows_symlinks,
        })
    }

    /// Opens `path` below the directory (empty: the directory itself) for reading, a regular file or a directory.
    ///
    /// # Errors
    /// Those of `open`; `EISDIR` for a directory where the system cannot open one, `ELOOP` for what is not the name of
    /// something inside.
    pub(crate) fn open_below(&self, path: &[u8]) -> Result<File, Errno> {
        let resolved = self.resolve(path)?.ok_or(Errno::LOOP)?;
        let found = resolved.metadata().map_err(errno)?;
        if found.is_dir() {
            return Err(Errno::ISDIR);
        }
        if !found.is_file() {
            return Err(Errno::NOENT);
        }
        File::open(resolved).map_err(errno)
    }

    /// Where `path` leads, if that is inside.
    fn resolve(&self, path: &[u8]) -> Result<Option<PathBuf>, Errno> {
        let Ok(path) = std::str::from_utf8(path) else {
            return Ok(None);
        };
        // Between the parts of a path a client says `/` and nothing else.
        if path.contains(['\\', ':', '\0']) {
            return Ok(None);
        }
        let mut asked = self.root.clone();
        asked.extend(path.split('/').filter(|part| !part.is_empty()));
        let resolved = asked.canonicalize().map_err(errno)?;
        let Ok(below) = resolved.strip_prefix(&self.root) else {
            return Ok(None);
        };
        let is_inside = if self.follows_symlinks {
            below.components().all(is_visible)
        } else {
            resolved == asked
        };
        Ok(is_inside.then_some(resolved))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err gives")]
fn errno(error: Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A name that does not begin with a dot: clients are not shown others, however they come to them.
fn is_visible(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_is_opened() {
        let top = std::env::temp_dir().join(format!("citius-portable-{}", std::process::id()));
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
        for follows_symlinks in [false, true] {
            let directory = Directory::open(&root, follows_symlinks).expect("it exists");
            let opens = |path: &str| directory.open_below(path.as_bytes());
            assert!(opens("inner/file").is_ok());
            assert!(matches!(opens(""), Err(Errno::ISDIR)));
            assert!(matches!(opens("inner"), Err(Errno::ISDIR)));
            for outside in [
                "out",
                "absolute",
                "up",
                "up/secret",
                "loop",
                "none",
                "inner/file/x",
                "inner\\file",
                "../secret",
            ] {
                assert!(opens(outside).is_err(), "{outside} {follows_symlinks}");
            }
            assert_eq!(opens("in").is_ok(), follows_symlinks);
        }
        fs::remove_dir_all(&top).expect("it is ours");
    }
}
