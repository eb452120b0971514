//! Files that are written by a name that somebody gave: what is there is replaced, and no link is
//! followed. As root, no link of another user's on the way there either.
//!
//! Webdyno's own `core/files.py` has the same rule.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, absolute};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const MODE: Mode = Mode::from_bits_truncate(0o666);
/// On the way to a folder; as the kernel has it.
const MOST_LINKS: usize = 40;

/// Makes a file in the place of what is there. What the process has open, pipes and devices are
/// written to.
pub fn create(path: &Path) -> io::Result<File> {
    if is_stream(path) {
        return File::create(path);
    }
    let (folder, name) = place_of(path)?;
    match fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
        Ok(status) => match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile | FileType::Symlink => {
                fs::unlinkat(&folder, name, AtFlags::empty())?;
            }
            _ => {
                let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                return Ok(fs::openat(&folder, name, flags, Mode::empty())?.into());
            }
        },
    }
    Ok(fs::openat(&folder, name, NEW, MODE)?.into())
}

/// Puts a whole file in the place of what is there, so that nobody reads half of it.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let (folder, name) = place_of(path)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let unfinished = format!(".{}.{}.{now}", name.display(), process::id());
    let mut file = File::from(fs::openat(&folder, &unfinished, NEW, MODE)?);
    let replaced = file
        .write_all(content)
        .and_then(|()| Ok(fs::renameat(&folder, &unfinished, &folder, name)?));
    if replaced.is_err() {
        let _ = fs::unlinkat(&folder, &unfinished, AtFlags::empty());
    }
    replaced
}

fn is_stream(path: &Path) -> bool {
    let text = path.to_string_lossy();
    matches!(&*text, "/dev/stdout" | "/dev/stderr")
        || ["/dev/fd/", "/proc/self/fd/"].iter().any(|folder| text.starts_with(folder))
}

/// Opens the folder that a file is in, and gives the file's name there.
fn place_of(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let opened = if geteuid().is_root() {
        without_links_of_others(folder)?
    } else {
        fs::openat(CWD, folder, FOLDER, Mode::empty())?
    };
    Ok((opened, name))
}

fn without_links_of_others(folder: &Path) -> io::Result<OwnedFd> {
    let root = || fs::openat(CWD, "/", FOLDER, Mode::empty());
    let trusted = [0, sudo_caller().unwrap_or(0)];
    let mut ahead: Vec<OsString> = parts_backwards(&absolute(folder)?).collect();
    let (mut there, mut links) = (root()?, 0);
    while let Some(part) = ahead.pop() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = fs::openat(&there, &part, flags, Mode::empty())?;
        let status = fs::fstat(&inner)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
            there = inner;
            continue;
        }
        let goal = fs::readlinkat(&inner, "", Vec::new())?;
        let goal = Path::new(OsStr::from_bytes(goal.as_bytes()));
        if !trusted.contains(&status.st_uid) {
            let (user, goal) = (status.st_uid, goal.display());
            return Err(io::Error::other(format!(
                "a link of user {user}'s to {goal} is on the way; name that folder"
            )));
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if goal.is_absolute() {
            there = root()?;
        }
        ahead.extend(parts_backwards(goal));
    }
    Ok(there)
}

fn parts_backwards(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().rev().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    })
}

fn sudo_caller() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{read_to_string, write};
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn what_a_link_leads_to_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [kept, link] = ["kept", "link"].map(|name| folder.path().join(name));
        write(&kept, "before").expect("a file");
        for replaces in [false, true] {
            let _ = std::fs::remove_file(&link);
            symlink(&kept, &link).expect("a link");
            if replaces {
                replace(&link, b"after").expect("written");
            } else {
                create(&link).and_then(|mut file| file.write_all(b"after")).expect("written");
            }
            assert_eq!(read_to_string(&link).expect("a file"), "after");
            assert_eq!(read_to_string(&kept).expect("a file"), "before");
        }
        let names = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 2, "nothing unfinished is left");
    }

    #[test]
    fn root_follows_no_link_of_another_user_on_the_way() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [inner, link] = ["inner", "link"].map(|name| folder.path().join(name));
        std::fs::create_dir(&inner).expect("a folder");
        symlink("inner", &link).expect("a link");
        create(&link.join("a")).expect("by a link of root's");
        lchown(&link, Some(65534), None).expect("given away");
        let error = create(&link.join("b")).expect_err("by a link of somebody else's");
        assert!(error.to_string().contains("a link of user 65534's to inner"), "{error}");
    }
}
