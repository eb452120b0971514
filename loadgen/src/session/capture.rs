//! Takes values out of answers.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use regex::bytes::Regex;

use super::html::Selector;
use super::json::Path;
use crate::http1::cookies::CookieJar;
use crate::order;

/// More than this of a body isn't kept: whatever is looked for comes before.
pub const MOST_BODY_BYTES: usize = 8 * 1024 * 1024;

/// An answer as captures see it.
pub struct Seen<'a> {
    pub head: &'a [u8],
    /// Out of its encoding.
    pub body: &'a [u8],
    pub jar: &'a CookieJar,
}

/// One value that an answer gives.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The number of the value.
    pub value: usize,
    source: Source,
    /// What it is, for people.
    pub words: String,
}

#[derive(Debug, Clone)]
enum Source {
    Css(Selector, Option<String>),
    Regex(Regex),
    Json(Path),
    Header(String),
    Cookie(String),
}

impl Capture {
    pub fn new(value: usize, name: &str, from: &order::Capture) -> Result<Capture, String> {
        let mut given = Vec::new();
        if let Some(text) = &from.css {
            given.push(("css", text, Source::Css(Selector::parse(text)?, from.attribute.clone())));
        }
        if let Some(text) = &from.regex {
            let pattern = Regex::new(text).map_err(|error| format!("regex: {error}"))?;
            given.push(("regex", text, Source::Regex(pattern)));
        }
        if let Some(text) = &from.json {
            given.push(("json", text, Source::Json(Path::parse(text)?)));
        }
        if let Some(text) = &from.header {
            given.push(("header", text, Source::Header(text.clone())));
        }
        if let Some(text) = &from.cookie {
            given.push(("cookie", text, Source::Cookie(text.clone())));
        }
        if given.len() != 1 || from.attribute.is_some() && from.css.is_none() {
            return Err("give one of css (with an attribute), regex, json, header, cookie".into());
        }
        let (kind, text, source) = given.remove(0);
        Ok(Capture { value, source, words: format!("{{{{{name}}}}} ({kind} {text})") })
    }

    /// It is in the body, which has to be read.
    pub fn reads_body(&self) -> bool {
        !matches!(self.source, Source::Header(_) | Source::Cookie(_))
    }

    pub fn find(&self, seen: &Seen) -> Option<Vec<u8>> {
        match &self.source {
            Source::Css(selector, attribute) => selector.find(seen.body, attribute.as_deref()),
            Source::Json(path) => path.find(seen.body),
            Source::Header(name) => field(seen.head, name).map(<[u8]>::to_vec),
            Source::Cookie(name) => seen.jar.value(name.as_bytes()).map(<[u8]>::to_vec),
            Source::Regex(pattern) => {
                let groups = pattern.captures(seen.body)?;
                let group = if pattern.captures_len() > 1 { groups.get(1) } else { groups.get(0) };
                group.map(|group| group.as_bytes().to_vec())
            }
        }
    }
}

/// The value of a head's field; of several of its name the first.
pub fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| line[colon + 1..].trim_ascii())
    })
}

/// A body out of its encoding (RFC 9110 section 8.4.1).
pub fn decoded<'a>(head: &[u8], body: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
    let encoding = field(head, "content-encoding").unwrap_or_default().to_ascii_lowercase();
    let most = MOST_BODY_BYTES as u64;
    let mut plain = Vec::new();
    let read = match encoding.as_slice() {
        b"" | b"identity" => return Ok(body.into()),
        b"gzip" | b"x-gzip" => MultiGzDecoder::new(body).take(most).read_to_end(&mut plain),
        b"deflate" => ZlibDecoder::new(body).take(most).read_to_end(&mut plain),
        other => {
            let named = other.escape_ascii();
            return Err(format!(
                "its body came in the encoding {named}, which can't be looked into; accept gzip, \
                 deflate or identity"
            ));
        }
    };
    match read {
        Ok(_) => Ok(plain.into()),
        Err(error) => Err(format!("its {} body is broken: {error}", encoding.escape_ascii())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nX-Token:  a:b \r\nLocation: /x\r\nx-token: c\r\n\r\n";

    fn capture(json: &str) -> Result<Capture, String> {
        Capture::new(0, "it", &serde_json::from_str(json).expect("a capture"))
    }

    #[test]
    fn finds_by_all_kinds() {
        let mut jar = CookieJar::default();
        jar.keep(b"Set-Cookie: s=\"42\"; Path=/\r\n", "/");
        let body = br#"<a href="/items/17">{"id": 5}</a>"#;
        for (json, wanted) in [
            (r#"{"css": "a", "attribute": "href"}"#, Some(&b"/items/17"[..])),
            (r#"{"regex": "/items/(\\d+)"}"#, Some(b"17")),
            (r#"{"regex": "/items/\\d+"}"#, Some(b"/items/17")),
            (r#"{"regex": "(x)|items"}"#, None),
            (r#"{"header": "x-TOKEN"}"#, Some(b"a:b")),
            (r#"{"cookie": "s"}"#, Some(b"\"42\"")),
            (r#"{"cookie": "t"}"#, None),
        ] {
            let seen = Seen { head: HEAD, body, jar: &jar };
            let value = capture(json).expect("a capture").find(&seen);
            assert_eq!(value.as_deref(), wanted, "{json}");
        }
    }

    #[test]
    fn one_source_is_needed() {
        for (json, message) in [
            ("{}", "one of"),
            (r#"{"css": "a", "json": "$.a"}"#, "one of"),
            (r#"{"json": "$.a", "attribute": "x"}"#, "one of"),
            (r#"{"regex": "("}"#, "regex"),
            (r#"{"css": "a > b"}"#, "spaces"),
        ] {
            assert!(capture(json).is_err_and(|why| why.contains(message)), "{json}");
        }
    }

    #[test]
    fn bodies_are_decoded() {
        let head =
            |encoding: &str| format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n");
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"token").expect("memory");
        let gzip = gzip.finish().expect("memory");
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"token").expect("memory");
        let zlib = zlib.finish().expect("memory");
        for (encoding, body) in [("GZIP", &gzip[..]), ("deflate", &zlib), ("identity", b"token")] {
            let decoded = decoded(head(encoding).as_bytes(), body).expect("decoded");
            assert_eq!(&*decoded, b"token", "{encoding}");
        }
        let cut = decoded(head("gzip").as_bytes(), &gzip[..gzip.len() - 3]);
        assert!(cut.is_err_and(|why| why.contains("broken")));
        assert!(decoded(head("br").as_bytes(), b"x").is_err_and(|why| why.contains("identity")));
    }
}
