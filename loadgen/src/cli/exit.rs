//! How the program ends, and what it prints before.

use std::io::{self, Write};

/// Everything went as asked.
pub const OK: u8 = 0;
/// Some requests failed, or none had a response.
pub const FAILED: u8 = 1;
/// The command line or an order is wrong, or the run couldn't start.
pub const USAGE: u8 = 2;
/// The client was saturated in some windows.
pub const CLIENT_LIMITED: u8 = 3;
/// What was measured could not be written: a file or disk is full, or nobody reads.
pub const UNWRITTEN: u8 = 4;
/// A figure crossed a limit that was given.
pub const CROSSED: u8 = 5;

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Stop {
    pub code: u8,
    pub message: String,
}

impl<T: Into<String>> From<T> for Stop {
    fn from(message: T) -> Self {
        Stop { code: USAGE, message: message.into() }
    }
}

/// Something could not be written to `to`.
pub fn unwritten(to: &str, error: &io::Error) -> Stop {
    Stop { code: UNWRITTEN, message: format!("{to}: {error}; give it a place that takes it") }
}

/// Prints to standard output, at once.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())
        .and_then(|()| out.flush())
        .map_err(|error| unwritten("standard output", &error))
}

/// Prints a message for people; where that can't be written, it is of no use.
pub fn notify(text: &str) {
    let _ = writeln!(io::stderr(), "loadgen: {text}");
}
