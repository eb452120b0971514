//! gRPC: its failures come with HTTP status 200, and tell themselves in a field of their own, in the
//! trailers or, where there is no body, in the head.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

const OK: &str = "0";
/// Of the server's message to people.
const SHOWN_CHARS: usize = 100;

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

#[derive(Debug, Default)]
pub struct Rpc {
    pub status: Option<String>,
    message: Option<String>,
}

impl Rpc {
    /// Of an answer's head; nothing where the answer isn't one of gRPC.
    pub fn of(head: &HeaderMap) -> Option<Rpc> {
        let kind = head.get(CONTENT_TYPE)?.as_bytes();
        kind.starts_with(b"application/grpc").then(|| {
            let mut rpc = Rpc::default();
            rpc.read(head);
            rpc
        })
    }

    /// Takes over what fields of a head or of trailers say.
    pub fn read(&mut self, fields: &HeaderMap) {
        let text = |name: &str| {
            let value = String::from_utf8_lossy(fields.get(name)?.as_bytes());
            Some(value.chars().take(SHOWN_CHARS).collect())
        };
        (self.status, self.message) = (text("grpc-status"), text("grpc-message"));
    }

    /// The status where it is a number.
    pub fn code(&self) -> Option<u16> {
        self.status.as_ref()?.parse().ok()
    }

    /// What went wrong, in words.
    pub fn failure(&self) -> Option<String> {
        match &self.status {
            Some(status) if status == OK => None,
            Some(status) => {
                let message = self.message.as_deref().unwrap_or("no grpc-message");
                let shown = self.code().map_or_else(|| status.clone(), status_text);
                Some(format!("grpc-status {shown} instead of 0 ({message})"))
            }
            None => Some("an answer of gRPC without a grpc-status".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(of: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            ((*name).parse().expect("a name"), (*value).parse().expect("a value"))
        };
        of.iter().map(field).collect()
    }

    #[test]
    fn failures_are_in_head_or_trailers() {
        let kind = ("content-type", "application/grpc+proto");
        assert!(Rpc::of(&fields(&[("content-type", "text/plain")])).is_none());
        let mut rpc = Rpc::of(&fields(&[kind])).expect("gRPC");
        assert!(rpc.failure().is_some_and(|why| why.contains("without a grpc-status")));
        rpc.read(&fields(&[("grpc-status", "0")]));
        assert_eq!(rpc.failure(), None);
        let rpc = Rpc::of(&fields(&[kind, ("grpc-status", "14"), ("grpc-message", "gone")]));
        let why = rpc.and_then(|rpc| rpc.failure());
        assert_eq!((status_text(0), status_text(99)), ("0 OK".into(), "99".into()));
        assert_eq!(why.as_deref(), Some("grpc-status 14 UNAVAILABLE instead of 0 (gone)"));
    }
}
