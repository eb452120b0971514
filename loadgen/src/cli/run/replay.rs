//! Replaying an access log in combined format.
//!
//! Such logs have times in whole seconds: lines of the same second are spread evenly over it. The
//! order of the lines is kept; a time that goes back counts as the one before.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use chrono::DateTime;

use crate::given;
use crate::order::{Expect, Request};

/// What is asked for, in which order and when.
#[derive(Debug, Default)]
pub struct Replay {
    pub requests: Vec<Request>,
    /// Per usable line: index into `requests`.
    pub sequence: Vec<u32>,
    /// Per usable line: seconds after the first.
    pub times_s: Arc<[f64]>,
    /// What was left out, in words.
    pub notes: Vec<String>,
}

const MOST_NAMED: usize = 5;

/// Reads a log that is to be asked of `base`, `speed` times as fast as it was.
pub fn read(file: &Path, base: &str, speed: f64) -> Result<Replay, String> {
    let opened = given::open(file).map_err(|e| format!("--replay {}: {e}", file.display()))?;
    let mut replay = Replay::default();
    let mut seconds = Vec::new();
    let mut known: HashMap<Line, u32> = HashMap::new();
    let mut unusable = 0u64;
    for (index, line) in BufReader::new(opened).split(b'\n').enumerate() {
        let bytes = line.map_err(|error| format!("{}: {error}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        if text.trim().is_empty() {
            continue;
        }
        match parse(&text) {
            Ok((at_s, line)) => {
                let next = known.len() as u32;
                let request = *known.entry(line.clone()).or_insert(next);
                if request == next {
                    replay.requests.push(line.request(base));
                }
                replay.sequence.push(request);
                seconds.push(at_s);
            }
            Err(why) => {
                unusable += 1;
                if replay.notes.len() < MOST_NAMED {
                    replay.notes.push(format!("{}:{}: {why}", file.display(), index + 1));
                }
            }
        }
    }
    if replay.sequence.is_empty() {
        let named = replay.notes.join("\n  ");
        return Err(format!("{}: has no line to replay\n  {named}", file.display()));
    }
    if unusable > 0 {
        replay.notes.insert(0, format!("{unusable} lines of the log were left out:"));
    }
    let mut times_s = spread(seconds);
    times_s.iter_mut().for_each(|at_s| *at_s /= speed);
    replay.times_s = times_s.into();
    Ok(replay)
}

/// What distinguishes one request from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    method: String,
    path: String,
    status: u16,
}

impl Line {
    fn request(&self, base: &str) -> Request {
        // Without its conditions and ranges a request is answered in full.
        let status = match self.status {
            304 | 206 => vec![self.status, 200],
            status => vec![status],
        };
        Request {
            method: self.method.clone(),
            expect: Expect { status: Some(status), ..Expect::default() },
            ..Request::get(format!("{}{}", base.trim_end_matches('/'), self.path))
        }
    }
}

/// Takes one line apart: host ident user [time] "request" status bytes …
fn parse(line: &str) -> Result<(i64, Line), &'static str> {
    let (_, rest) = line.split_once(" [").ok_or("no time in brackets")?;
    let (time, rest) = rest.split_once("] \"").ok_or("no request in quotes after the time")?;
    let (request, rest) = rest.split_once("\" ").ok_or("the request's quotes don't end")?;
    let at_s = DateTime::parse_from_str(time, "%d/%b/%Y:%H:%M:%S %z")
        .map_err(|_| "the time is not like 10/Oct/2026:13:55:36 +0000")?
        .timestamp();
    let mut words = request.split(' ');
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the request is not `METHOD PATH VERSION`");
    };
    if !version.starts_with("HTTP/") || !path.starts_with('/') {
        return Err("the request is not `METHOD PATH VERSION`");
    }
    if method != "GET" && method != "HEAD" {
        return Err("only GET and HEAD can be replayed: the log has no bodies");
    }
    if path.bytes().any(|b| b <= b' ' || b == 0x7f || b == b'#') {
        return Err("the path has characters that no request can have");
    }
    let status = rest.split(' ').next().and_then(|s| s.parse().ok());
    let status = status.filter(|s| (200..=999).contains(s)).ok_or("the status is not a number")?;
    Ok((at_s, Line { method: method.into(), path: path.into(), status }))
}

/// Spreads lines of the same second evenly over it, from the first line on.
fn spread(mut ascending: Vec<i64>) -> Vec<f64> {
    for index in 1..ascending.len() {
        ascending[index] = ascending[index].max(ascending[index - 1]);
    }
    let mut times = Vec::with_capacity(ascending.len());
    for same in ascending.chunk_by(|a, b| a == b) {
        let whole = (same[0] - ascending[0]) as f64;
        times.extend((0..same.len()).map(|nth| whole + nth as f64 / same.len() as f64));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_combined_line() {
        let line =
            r#"::1 - bob [10/Oct/2026:13:55:36 +0200] "GET /a?b HTTP/1.1" 304 5 "-" "x \"y""#;
        let (at, line) = parse(line).expect("well formed");
        assert_eq!(at, 1_791_633_336);
        assert_eq!((line.method.as_str(), line.path.as_str(), line.status), ("GET", "/a?b", 304));
        assert_eq!(line.request("http://h/").url, "http://h/a?b");
    }

    #[test]
    fn names_what_is_wrong() {
        for (line, wanted) in [
            ("nonsense", "brackets"),
            ("h - - [yesterday] \"GET / HTTP/1.1\" 200 1", "time"),
            ("h - - [10/Oct/2026:13:55:36 +0000] \"\\x16\\x03\" 400 1", "METHOD"),
            ("h - - [10/Oct/2026:13:55:36 +0000] \"POST / HTTP/1.1\" 200 1", "bodies"),
            ("h - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" - 1", "status"),
        ] {
            assert!(parse(line).expect_err(line).contains(wanted), "{line}");
        }
    }

    #[test]
    fn spreads_a_second() {
        assert_eq!(spread(vec![7, 7, 6, 8, 10]), [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0, 3.0]);
    }

    #[test]
    fn keeps_order_and_times_of_a_hundred_thousand_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("access.log");
        let mut text = String::new();
        for nth in 0..100_000 {
            if nth % 1000 == 7 {
                text.push_str("not a line of a log\n");
            }
            let (minute, second, page) = (nth / 6000, nth / 100 % 60, nth * 7919 % 500);
            text.push_str(&format!(
                "::1 - - [21/Nov/2026:10:{minute:02}:{second:02} +0000] \"GET /{page} HTTP/1.1\" \
                 200 13 \"-\" \"x\"\n"
            ));
        }
        std::fs::write(&file, text).expect("a file");
        let replay = read(&file, "http://127.0.0.1", 1.0).expect("a log");
        assert_eq!((replay.sequence.len(), replay.requests.len()), (100_000, 500));
        assert!(
            replay.notes[0].starts_with("100 lines") && replay.notes[1].contains(":8: no time")
        );
        for (nth, (request, at_s)) in replay.sequence.iter().zip(&*replay.times_s).enumerate() {
            let page = nth * 7919 % 500;
            assert!(replay.requests[*request as usize].url.ends_with(&format!("/{page}")));
            assert!((at_s - nth as f64 / 100.0).abs() < 1e-9, "{nth} {at_s}");
        }
    }
}
