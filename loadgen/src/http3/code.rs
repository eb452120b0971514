//! Error codes of HTTP/3 and QPACK (RFC 9114 section 8.1, RFC 9204 section 6) and of QUIC (RFC 9000
//! section 20.1), and what a server does wrong.

pub const NO_ERROR: u32 = 0x100;
pub const STREAM_CREATION_ERROR: u32 = 0x103;
pub const CLOSED_CRITICAL_STREAM: u32 = 0x104;
pub const FRAME_UNEXPECTED: u32 = 0x105;
pub const FRAME_ERROR: u32 = 0x106;
pub const EXCESSIVE_LOAD: u32 = 0x107;
pub const ID_ERROR: u32 = 0x108;
pub const SETTINGS_ERROR: u32 = 0x109;
pub const MISSING_SETTINGS: u32 = 0x10a;
pub const REQUEST_REJECTED: u32 = 0x10b;
pub const REQUEST_CANCELLED: u32 = 0x10c;
pub const MESSAGE_ERROR: u32 = 0x10e;
pub const DECOMPRESSION_FAILED: u32 = 0x200;
pub const ENCODER_STREAM_ERROR: u32 = 0x201;

const FIRST_OF_HTTP: u64 = 0x100;
const OF_HTTP: [&str; 17] = [
    "H3_NO_ERROR",
    "H3_GENERAL_PROTOCOL_ERROR",
    "H3_INTERNAL_ERROR",
    "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM",
    "H3_FRAME_UNEXPECTED",
    "H3_FRAME_ERROR",
    "H3_EXCESSIVE_LOAD",
    "H3_ID_ERROR",
    "H3_SETTINGS_ERROR",
    "H3_MISSING_SETTINGS",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR",
    "H3_CONNECT_ERROR",
    "H3_VERSION_FALLBACK",
];
const FIRST_OF_QPACK: u64 = 0x200;
const OF_QPACK: [&str; 3] =
    ["QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR"];
const OF_QUIC: [&str; 17] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
];
/// Codes from here on are alerts of TLS (RFC 9001 section 4.8).
const FIRST_OF_TLS: u64 = 0x100;

/// A code of HTTP/3 as people know it.
pub fn name(code: u64) -> String {
    named(&OF_HTTP, FIRST_OF_HTTP, code)
        .or_else(|| named(&OF_QPACK, FIRST_OF_QPACK, code))
        .map_or_else(|| format!("error {code:#x}"), str::to_owned)
}

/// A code of QUIC as people know it.
pub fn name_of_quic(code: u64) -> String {
    named(&OF_QUIC, 0, code).map_or_else(|| format!("error {code:#x}"), str::to_owned)
}

/// The alert of TLS that a code of QUIC stands for.
pub fn alert(code: u64) -> Option<u8> {
    u8::try_from(code.checked_sub(FIRST_OF_TLS)?).ok()
}

fn named(names: &[&'static str], first: u64, code: u64) -> Option<&'static str> {
    names.get(usize::try_from(code.checked_sub(first)?).ok()?).copied()
}

/// A rule that the server broke: the code by which it is reported, and what it did, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub code: u32,
    pub what: &'static str,
}

impl Fault {
    pub const fn new(code: u32, what: &'static str) -> Fault {
        Fault { code, what }
    }

    /// An answer that says what none can (RFC 9114 section 4.1.2).
    pub const fn message(what: &'static str) -> Fault {
        Fault { code: MESSAGE_ERROR, what }
    }

    pub const fn unexpected(what: &'static str) -> Fault {
        Fault { code: FRAME_UNEXPECTED, what }
    }

    /// What it did, and the code.
    pub fn words(&self) -> String {
        format!("{} ({})", self.what, name(self.code.into()))
    }

    /// The server asks too much of us.
    pub const fn excess(what: &'static str) -> Fault {
        Fault { code: EXCESSIVE_LOAD, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        assert_eq!(name(REQUEST_REJECTED.into()), "H3_REQUEST_REJECTED");
        assert_eq!(name(0x110), "H3_VERSION_FALLBACK");
        assert_eq!(name(ENCODER_STREAM_ERROR.into()), "QPACK_ENCODER_STREAM_ERROR");
        assert_eq!([name(0x111), name(3)], ["error 0x111", "error 0x3"]);
        assert_eq!(
            [name_of_quic(0xa), name_of_quic(0x10)],
            ["PROTOCOL_VIOLATION", "NO_VIABLE_PATH"]
        );
        assert_eq!(
            (name_of_quic(0x99), alert(0x178), alert(2)),
            ("error 0x99".into(), Some(120), None)
        );
    }
}
