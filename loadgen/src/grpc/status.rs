//! Failures come with HTTP status 200, and are reported in a field of their own, in the trailers or,
//! where there is no body, in the head.

use crate::shown::beginning;

pub const OK: u16 = 0;
/// The server has no such method.
pub const UNIMPLEMENTED: u16 = 12;

/// By number (grpc.io, "Status codes and their use in gRPC").
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// A status as people know it.
pub fn status_text(status: u16) -> String {
    match NAMES.get(usize::from(status)) {
        Some(name) => format!("{status} {name}"),
        None => status.to_string(),
    }
}

/// Whether content of this type is that of gRPC.
pub fn is_content(kind: &[u8]) -> bool {
    kind.starts_with(b"application/grpc")
}

/// What a call came to.
#[derive(Debug, Default, PartialEq)]
pub struct Rpc {
    status: Option<Status>,
    message: Option<String>,
    /// It is said how compressed messages are.
    pub is_encoded: bool,
}

#[derive(Debug, PartialEq)]
enum Status {
    Code(u16),
    /// It is no number.
    Odd(String),
}

impl Rpc {
    /// Takes over the field `grpc-status`; the first one counts.
    pub fn take_status(&mut self, value: &[u8]) {
        let text = || std::str::from_utf8(value).ok()?.parse().ok();
        self.status
            .get_or_insert_with(|| text().map_or_else(|| Status::Odd(shown(value)), Status::Code));
    }

    /// Takes over the field `grpc-message`; the first one counts.
    pub fn take_message(&mut self, value: &[u8]) {
        self.message.get_or_insert_with(|| shown(value));
    }

    /// Takes over the field `grpc-encoding`.
    pub fn take_encoding(&mut self, value: &[u8]) {
        self.is_encoded = value != b"identity";
    }

    /// What an answer's head and then its trailers say.
    pub fn or(self, trailers: Rpc) -> Rpc {
        let is_encoded = self.is_encoded;
        let says = if self.status.is_some() { self } else { trailers };
        Rpc { is_encoded, ..says }
    }

    /// The status where it is a number.
    pub fn code(&self) -> Option<u16> {
        match self.status {
            Some(Status::Code(code)) => Some(code),
            _ => None,
        }
    }

    /// What went wrong, in words.
    pub fn failure(&self) -> Option<String> {
        let status = match &self.status {
            Some(Status::Code(OK)) => return None,
            Some(Status::Code(code)) => status_text(*code),
            Some(Status::Odd(text)) => text.clone(),
            None => return Some("an answer of gRPC without a grpc-status".into()),
        };
        let message = self.message.as_deref().unwrap_or("no grpc-message");
        Some(format!("grpc-status {status} instead of 0 ({message})"))
    }
}

fn shown(value: &[u8]) -> String {
    beginning(&String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_in_head_or_trailers() {
        assert!(is_content(b"application/grpc+proto") && !is_content(b"text/plain"));
        let rpc = |status: &str, message: Option<&str>| {
            let mut rpc = Rpc::default();
            rpc.take_status(status.as_bytes());
            message.iter().for_each(|message| rpc.take_message(message.as_bytes()));
            rpc
        };
        let missing = Rpc::default().failure();
        assert!(missing.is_some_and(|why| why.contains("without a grpc-status")));
        assert_eq!(Rpc::default().or(rpc("0", None)).failure(), None);
        let gone = rpc("14", Some("gone")).or(rpc("0", None));
        assert_eq!((status_text(0), status_text(99)), ("0 OK".into(), "99".into()));
        let why = gone.failure();
        assert_eq!(why.as_deref(), Some("grpc-status 14 UNAVAILABLE instead of 0 (gone)"));
        let odd = rpc("soon", None);
        assert_eq!(odd.code(), None);
        let why = odd.failure();
        assert_eq!(why.as_deref(), Some("grpc-status soon instead of 0 (no grpc-message)"));
    }
}
