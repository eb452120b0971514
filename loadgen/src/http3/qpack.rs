//! Header compression (QPACK, RFC 9204) without a dynamic table: we allow none, and need none. Each
//! list stands for itself, so that no answer waits for another.

use super::code::{DECOMPRESSION_FAILED, Fault};
use crate::http1::head::MAX_HEAD_BYTES;
use crate::http2::hpack::{Decoded, ENTRY_BYTES, Input, encode_number, encode_string};

/// What a list begins with that needs no dynamic table (section 4.5.1).
pub const PREFIX: [u8; 2] = [0, 0];
const COUNT_BITS: u32 = 8;
const BASE_BITS: u32 = 7;

// How a field begins that is in the static table, whose name is, or that is spelt out, and how many
// bits of its first byte are a number (section 4.5).
const INDEXED: (u8, u32) = (0xc0, 6);
const NAMED: (u8, u32) = (0x50, 4);
const SPELT: (u8, u32) = (0x20, 3);
/// Fields that only a table of the server's making has.
const INDEXED_MARK: u8 = 0x80;
const NAMED_MARK: u8 = 0x40;
const STATIC_OF_INDEXED: u8 = 0x40;
const STATIC_OF_NAMED: u8 = 0x10;
const VALUE_BITS: u32 = 7;

/// An instruction of the server's encoder to have no dynamic table, as there is none (section
/// 4.3.1): the only one that it may send.
pub const NO_TABLE: u8 = 0x20;

/// Appends a field of a list.
pub fn encode(name: &str, value: &str, section: &mut Vec<u8>) {
    if let Some(at) = STATIC.iter().position(|field| *field == (name, value)) {
        return encode_number(INDEXED, at, section);
    }
    match STATIC.iter().position(|field| field.0 == name) {
        Some(at) => encode_number(NAMED, at, section),
        None => {
            encode_number(SPELT, name.len(), section);
            section.extend_from_slice(name.as_bytes());
        }
    }
    encode_string(value, section);
}

/// Decodes lists; strings are remembered from one to the next.
#[derive(Debug, Default)]
pub struct Decoder {
    names: Decoded,
    values: Decoded,
}

impl Decoder {
    /// Decodes a list in full, and hands over name and value of each field.
    pub fn decode(&mut self, section: &[u8], take: impl FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        self.decode_list(section, take).map_err(|what| Fault::new(DECOMPRESSION_FAILED, what))
    }

    fn decode_list(
        &mut self,
        section: &[u8],
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), &'static str> {
        let mut input = Input::new(section);
        self.names.begin();
        self.values.begin();
        let count = input.number(COUNT_BITS).map_err(|fault| fault.what)?;
        let _base = input.number(BASE_BITS).map_err(|fault| fault.what)?;
        if count > 0 {
            return Err(NO_SUCH_TABLE);
        }
        let mut list_bytes = 0;
        while let Some(first) = input.first() {
            let fault = |fault: crate::http2::code::Fault| fault.what;
            let (name, value) = if first & INDEXED_MARK != 0 {
                ensure_static(first & STATIC_OF_INDEXED)?;
                let (name, value) = entry(input.number(INDEXED.1).map_err(fault)?)?;
                (name.as_bytes(), value.as_bytes())
            } else if first & NAMED_MARK != 0 {
                ensure_static(first & STATIC_OF_NAMED)?;
                let (name, _) = entry(input.number(NAMED.1).map_err(fault)?)?;
                (name.as_bytes(), input.string(VALUE_BITS, &mut self.values).map_err(fault)?)
            } else {
                ensure_static(first & SPELT.0)?;
                let name = input.string(SPELT.1, &mut self.names).map_err(fault)?;
                (name, input.string(VALUE_BITS, &mut self.values).map_err(fault)?)
            };
            list_bytes += name.len() + value.len() + ENTRY_BYTES;
            if list_bytes > MAX_HEAD_BYTES {
                return Err("header fields are too long");
            }
            take(name, value);
        }
        Ok(())
    }
}

const NO_SUCH_TABLE: &str = "a header field is in a dynamic table, though there is none";

fn ensure_static(mark: u8) -> Result<(), &'static str> {
    if mark == 0 { Err(NO_SUCH_TABLE) } else { Ok(()) }
}

fn entry(index: usize) -> Result<(&'static str, &'static str), &'static str> {
    STATIC.get(index).copied().ok_or("a header field is not in the static table")
}

/// Appendix A.
#[rustfmt::skip]
static STATIC: [(&str, &str); 99] = [
    (":authority", ""), (":path", "/"), ("age", "0"), ("content-disposition", ""),
    ("content-length", "0"), ("cookie", ""), ("date", ""), ("etag", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("referer", ""),
    ("set-cookie", ""), (":method", "CONNECT"), (":method", "DELETE"), (":method", "GET"),
    (":method", "HEAD"), (":method", "OPTIONS"), (":method", "POST"), (":method", "PUT"),
    (":scheme", "http"), (":scheme", "https"), (":status", "103"), (":status", "200"),
    (":status", "304"), (":status", "404"), (":status", "503"), ("accept", "*/*"),
    ("accept", "application/dns-message"), ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"), ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"), ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"), ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"), ("cache-control", "no-cache"), ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"), ("content-encoding", "br"),
    ("content-encoding", "gzip"), ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"), ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"), ("content-type", "image/gif"),
    ("content-type", "image/jpeg"), ("content-type", "image/png"), ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"), ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"), ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"), ("vary", "origin"), ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"), (":status", "100"), (":status", "204"), (":status", "206"),
    (":status", "302"), (":status", "400"), (":status", "403"), (":status", "421"),
    (":status", "425"), (":status", "500"), ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"), ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"), ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"), ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"), ("access-control-request-method", "get"),
    ("access-control-request-method", "post"), ("alt-svc", "clear"), ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"), ("expect-ct", ""), ("forwarded", ""), ("if-range", ""), ("origin", ""),
    ("purpose", "prefetch"), ("server", ""), ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"), ("user-agent", ""), ("x-forwarded-for", ""),
    ("x-frame-options", "deny"), ("x-frame-options", "sameorigin"),
];

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn decoded(decoder: &mut Decoder, section: &[u8]) -> Result<Vec<(String, String)>, Fault> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(section, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn section(hex: &str) -> Result<Vec<(String, String)>, Fault> {
        decoded(&mut Decoder::default(), &hex::decode(hex).expect("hex"))
    }

    #[test]
    fn fields_of_the_standard() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        // RFC 9204 appendix B.1.
        let path = section("0000510b2f696e6465782e68746d6c").expect("a list");
        assert_eq!(path, [field(":path", "/index.html")]);
        // As nginx begins an answer: 200, and a server in Huffman's code (RFC 7541 C.4's string).
        let head = section("0000d95f4d8cf1e3c2e5f23a6ba0ab90f4ff").expect("a list");
        assert_eq!(head, [field(":status", "200"), field("server", "www.example.com")]);
        // Spelt out, plain and in Huffman's code: 'a' is 00011.
        assert_eq!(section("0000226162012e").expect("a list"), [field("ab", ".")]);
        assert_eq!(section("0000291f811f").expect("a list"), [field("a", "a")]);
    }

    #[test]
    fn what_needs_a_dynamic_table_is_refused() {
        for hex in
            ["0100d9", "000080", "000010", "00004000", "00000000", "0000ff2400", "0000ff", "00", ""]
        {
            let fault = section(hex).expect_err(hex);
            assert_eq!(fault.code, DECOMPRESSION_FAILED);
        }
        assert_eq!(section("0000"), Ok(Vec::new()));
    }

    #[test]
    fn a_list_is_not_endless() {
        let mut list = PREFIX.to_vec();
        list.resize(MAX_HEAD_BYTES / 32, 0xd9);
        assert_eq!(
            decoded(&mut Decoder::default(), &list).expect_err("too long").code,
            DECOMPRESSION_FAILED
        );
    }

    proptest! {
        #[test]
        fn lists_are_read_as_written(
            fields in vec(("[a-z-]{1,12}", "[ -~]{0,40}"), 0..12), known in vec(0..99_usize, 0..9),
        ) {
            let mut all = fields;
            all.extend(known.iter().map(|at| (STATIC[*at].0.to_owned(), STATIC[*at].1.to_owned())));
            let mut list = PREFIX.to_vec();
            all.iter().for_each(|(name, value)| encode(name, value, &mut list));
            let mut decoder = Decoder::default();
            // What is remembered of the first changes nothing.
            for _ in 0..2 {
                prop_assert_eq!(decoded(&mut decoder, &list).expect("a list"), all.clone());
            }
        }

        #[test]
        fn whatever_comes_is_decoded_or_refused(list in vec(any::<u8>(), 0..200)) {
            let _ = decoded(&mut Decoder::default(), &list);
        }
    }
}
