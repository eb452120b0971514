//! Cookies as far as load needs them: what a user is given it sends back. Attributes are ignored,
//! but for those that take a cookie away (RFC 6265 sections 5.2.1 and 5.2.2).

use std::str;

use chrono::{DateTime, Utc};

/// What a client must be able to keep (RFC 6265 section 6.1); older ones make room for others.
const MOST_COOKIES: usize = 50;
/// A longer one is not kept, so that requests don't grow without end.
const LONGEST_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub struct CookieJar {
    /// Each as `name=value`.
    cookies: Vec<Vec<u8>>,
}

impl CookieJar {
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Takes over every `Set-Cookie` of a head.
    pub fn keep(&mut self, head: &[u8]) {
        for line in head.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            if line[..colon].eq_ignore_ascii_case(b"set-cookie") {
                self.set(line[colon + 1..].trim_ascii());
            }
        }
    }

    /// Appends the value of a `Cookie` field.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.cookies.join(&b"; "[..]));
    }

    fn set(&mut self, text: &[u8]) {
        let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        self.cookies.retain(|known| known.split(|byte| *byte == b'=').next() != Some(name));
        if name.is_empty() || pair.len() > LONGEST_BYTES || is_gone(parts) {
            return;
        }
        if self.cookies.len() == MOST_COOKIES {
            self.cookies.remove(0);
        }
        self.cookies.push([name, value].join(&b'='));
    }
}

/// Whether attributes take a cookie away. `Max-Age` has precedence, and what makes no sense is
/// ignored.
fn is_gone<'a>(attributes: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut max_age, mut expires) = (None, None);
    for attribute in attributes.filter_map(|it| str::from_utf8(it).ok()) {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = value.trim();
        match name.trim() {
            name if name.eq_ignore_ascii_case("max-age") => {
                max_age = value.parse::<i64>().ok().or(max_age);
            }
            name if name.eq_ignore_ascii_case("expires") => {
                // Some write the old `Thu, 01-Jan-1970`.
                let date = DateTime::parse_from_rfc2822(&value.replace('-', " "));
                expires = date.ok().or(expires);
            }
            _ => {}
        }
    }
    match (max_age, expires) {
        (Some(seconds), _) => seconds <= 0,
        (None, expires) => expires.is_some_and(|date| date < Utc::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(jar: &CookieJar) -> String {
        let mut text = Vec::new();
        jar.write(&mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn keeps_replaces_and_removes() {
        let mut jar = CookieJar::default();
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=2\r\n\r\n");
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=3\r\nSet-Cookie: nonsense\r\n\r\n");
        assert_eq!(written(&jar), "b=2; a=3");
        jar.keep(b"Set-Cookie: b=; Max-Age=0\r\nSet-Cookie: a=; max-age=0\r\n\r\n");
        assert!(jar.is_empty());
    }

    #[test]
    fn attributes_take_cookies_away() {
        for (attributes, gone) in [
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", true),
            ("expires=Thu, 01-Jan-1970 00:00:01 GMT; Path=/", true),
            ("Max-Age=-1", true),
            ("Max-Age = 0", true),
            ("Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", false),
            ("Expires=Fri, 01 Jan 2100 00:00:00 GMT", false),
            ("Expires=soon", false),
            ("Max-Age=", false),
        ] {
            let mut jar = CookieJar::default();
            jar.keep(b"Set-Cookie: a=1\r\n");
            jar.keep(format!("Set-Cookie: a=; {attributes}\r\n").as_bytes());
            assert_eq!(jar.is_empty(), gone, "{attributes}");
        }
    }

    #[test]
    fn a_jar_has_bounds() {
        let mut jar = CookieJar::default();
        for nth in 0..1000 {
            jar.keep(format!("Set-Cookie: n{nth}=1\r\n").as_bytes());
        }
        jar.keep(format!("Set-Cookie: long={}\r\n", "x".repeat(LONGEST_BYTES)).as_bytes());
        let text = written(&jar);
        assert_eq!(text.split("; ").count(), MOST_COOKIES);
        assert!(text.starts_with("n950=1; ") && text.ends_with("; n999=1"), "{text}");
    }
}
