//! Files that somebody names: regular ones, of no more than a size, so that nothing waits for ever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most that is read of a file as a whole.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Opens a file to read it; refuses pipes and devices, whose end may never come.
pub fn open(file: &Path) -> io::Result<File> {
    // Opening a pipe waits for whoever writes, unless asked not to.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file; write into one what it has"));
    }
    Ok(opened)
}

pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    all_of(open(file)?)
}

pub fn read_to_string(file: &Path) -> io::Result<String> {
    text_of(open(file)?)
}

/// Reads a text to its end, such as standard input.
pub fn text_of(source: impl Read) -> io::Result<String> {
    String::from_utf8(all_of(source)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is no UTF-8 text"))
}

fn all_of(source: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST_BYTES {
        let most = MOST_BYTES >> 20;
        return Err(io::Error::other(format!("is larger than {most} MiB, the most that is read")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        // With a hole in it, which takes no room.
        File::create(&path).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a file");
        let error = read(&path).expect_err("too large");
        assert!(error.to_string().contains("larger than 256 MiB"), "{error}");
    }
}
