//! How a server ends a WebSocket (RFC 6455 section 7.4).

use std::fmt;

use super::frame::Fault;
use crate::shown::beginning;

/// A Close without a code is reported as this one, which may not be sent.
pub const NO_CODE: u16 = 1005;
/// The end of what was to be said.
pub const NORMAL: u16 = 1000;

/// By code (IANA, "WebSocket Close Code Number Registry").
const NAMES: [(u16, &str); 14] = [
    (NORMAL, "normal closure"),
    (1001, "going away"),
    (1002, "protocol error"),
    (1003, "unsupported data"),
    (NO_CODE, "no code"),
    (1007, "invalid payload"),
    (1008, "policy violation"),
    (1009, "message too big"),
    (1010, "extension missing"),
    (1011, "internal error"),
    (1012, "service restart"),
    (1013, "try again later"),
    (1014, "bad gateway"),
    (3000, "unauthorized"),
];

/// A code as people know it.
pub fn code_text(code: u16) -> String {
    match NAMES.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => format!("{code} {name}"),
        None => code.to_string(),
    }
}

/// What a Close says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    pub code: u16,
    reason: String,
}

impl Farewell {
    /// Reads the payload of a Close.
    pub fn parse(payload: &[u8]) -> Result<Farewell, Fault> {
        let (code, reason) = match payload {
            [] => (NO_CODE, &[][..]),
            [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
            [_] => return Err(Fault::Close),
        };
        let may_be_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
        if !may_be_sent && !payload.is_empty() {
            return Err(Fault::Close);
        }
        let reason = beginning(&String::from_utf8_lossy(reason));
        Ok(Farewell { code, reason })
    }
}

impl fmt::Display for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server closed the WebSocket: {}", code_text(self.code))?;
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, " ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_named_and_checked() {
        let shown = |payload: &[u8]| Farewell::parse(payload).map(|farewell| farewell.to_string());
        let closed = "the server closed the WebSocket";
        assert_eq!(shown(b""), Ok(format!("{closed}: 1005 no code")));
        assert_eq!(shown(b"\x03\xe9bye"), Ok(format!("{closed}: 1001 going away (bye)")));
        assert_eq!(shown(b"\x0f\xa0"), Ok(format!("{closed}: 4000")));
        for wrong in [&b"\x03"[..], b"\x03\xed", b"\0\0", b"\x03\xe7", b"\x13\x88"] {
            assert_eq!(shown(wrong), Err(Fault::Close), "{wrong:?}");
        }
    }
}
