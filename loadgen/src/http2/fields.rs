//! What an answer's head or trailers say, as far as it matters here.

use memchr::memchr3;

use super::code::Fault;
use crate::grpc::status::{self, Rpc};

/// The fields of one list.
#[derive(Debug, Default, PartialEq)]
pub struct Fields {
    /// 0 where none is said, as in trailers.
    pub status: u16,
    pub content_length: Option<u64>,
    /// Of names and values, pseudo-fields apart.
    pub bytes: u64,
    /// The content is that of gRPC.
    pub is_grpc: bool,
    pub rpc: Rpc,
    /// What no answer can say (RFC 9113 section 8.1.1).
    pub fault: Option<Fault>,
    /// All of them, a line each, where they are to be kept.
    pub kept: Option<Vec<u8>>,
    /// Pseudo-fields stand before all others.
    is_past_pseudo: bool,
}

impl Fields {
    /// `keeps`: all of them are kept as well.
    pub fn new(keeps: bool) -> Fields {
        Fields { kept: keeps.then(Vec::new), ..Fields::default() }
    }

    /// Takes over what a field says.
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&[name, b": ", value, b"\n"].concat());
        }
        if name.starts_with(b":") {
            return self.take_pseudo(name, value);
        }
        self.is_past_pseudo = true;
        self.bytes += (name.len() + value.len()) as u64;
        match name {
            b"content-length" => self.take_length(value),
            b"content-type" => self.is_grpc |= status::is_content(value),
            b"grpc-status" => self.rpc.take_status(value),
            b"grpc-message" => self.rpc.take_message(value),
            b"grpc-encoding" => self.rpc.take_encoding(value),
            // Section 8.2.2.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => {
                self.is_wrong("a field about the connection has no place in HTTP/2 and 3")
            }
            _ => {}
        }
        // Section 8.2.1.
        if !is_name(name) || memchr3(b'\0', b'\r', b'\n', value).is_some() {
            self.is_wrong("a header field has bytes that none may have");
        }
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) {
        match value {
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9']
                if name == b":status" && self.status == 0 && !self.is_past_pseudo =>
            {
                self.status = value.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
            }
            _ => self.is_wrong("a pseudo-field is not the one :status of an answer"),
        }
    }

    fn take_length(&mut self, value: &[u8]) {
        let digits = std::str::from_utf8(value).ok().filter(|text| !text.starts_with('+'));
        let length = digits.and_then(|text| text.parse().ok());
        if length.is_none() || self.content_length.is_some_and(|known| length != Some(known)) {
            self.is_wrong("Content-Length is not a number");
        }
        self.content_length = length;
    }

    fn is_wrong(&mut self, what: &'static str) {
        self.fault.get_or_insert(Fault::protocol(what));
    }
}

/// Visible ASCII without capitals and colons.
fn is_name(name: &[u8]) -> bool {
    let fits = |byte: u8| matches!(byte, b'!'..=b'@' | b'['..=b'~') && byte != b':';
    !name.is_empty() && name.iter().fold(true, |all, byte| all & fits(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(of: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        of.iter().for_each(|(name, value)| fields.take(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[test]
    fn what_matters_is_kept() {
        let head = fields(&[
            (":status", "200"),
            ("content-length", "13"),
            ("content-length", "13"),
            ("grpc-status", "0"),
            ("content-type", "application/grpc"),
        ]);
        assert_eq!((head.status, head.content_length, head.fault), (200, Some(13), None));
        assert_eq!(head.bytes, 2 * (14 + 2) + 11 + 1 + 12 + 16);
        assert_eq!((head.is_grpc, head.rpc.code()), (true, Some(0)));
        assert_eq!(fields(&[]).status, 0);
    }

    #[test]
    fn what_no_answer_can_say() {
        for wrong in [
            &[(":status", "20")][..],
            &[(":status", "099")],
            &[(":status", "2000")],
            &[(":status", "200"), (":status", "200")],
            &[("a", "b"), (":status", "200")],
            &[(":path", "/")],
            &[(":", "")],
            &[("", "a")],
            &[("Server", "a")],
            &[("a b", "a")],
            &[("a:", "a")],
            &[("a\u{e4}", "a")],
            &[("a", "b\r\nc: d")],
            &[("a", "\0")],
            &[("connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("content-length", "-1")],
            &[("content-length", "+1")],
            &[("content-length", "")],
            &[("content-length", "18446744073709551616")],
            &[("content-length", "1"), ("content-length", "2")],
        ] {
            assert!(fields(wrong).fault.is_some(), "{wrong:?}");
        }
    }
}
