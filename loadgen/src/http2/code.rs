//! Error codes (RFC 9113 section 7), and what a server does wrong.

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// A code as people know it.
pub fn name(code: u32) -> String {
    let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    known.map_or_else(|| format!("error {code}"), |name| (*name).to_owned())
}

/// A rule that the server broke: the code by which it is reported, and what it did, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub code: u32,
    pub what: &'static str,
}

impl Fault {
    pub const fn protocol(what: &'static str) -> Fault {
        Fault { code: PROTOCOL_ERROR, what }
    }

    pub const fn size(what: &'static str) -> Fault {
        Fault { code: FRAME_SIZE_ERROR, what }
    }

    pub const fn flow(what: &'static str) -> Fault {
        Fault { code: FLOW_CONTROL_ERROR, what }
    }

    pub const fn compression(what: &'static str) -> Fault {
        Fault { code: COMPRESSION_ERROR, what }
    }

    /// The server asks too much of us.
    pub const fn excess(what: &'static str) -> Fault {
        Fault { code: ENHANCE_YOUR_CALM, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        assert_eq!(name(REFUSED_STREAM), "REFUSED_STREAM");
        assert_eq!(name(ENHANCE_YOUR_CALM), "ENHANCE_YOUR_CALM");
        assert_eq!(name(99), "error 99");
    }
}
