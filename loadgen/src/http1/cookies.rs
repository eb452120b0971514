//! Cookies as far as load needs them: what a user is given it sends back, to the paths it was given
//! for, until it expires (RFC 6265 section 5).
//!
//! Of attributes `Path`, `Max-Age` and `Expires` count. All requests of a user go to one server:
//! `Domain` and `Secure` are ignored, as these say where a cookie of a real site may go, which here
//! is under load at an address of its own.

use std::str;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// What a client must be able to keep (RFC 6265 section 6.1); older ones make room for others.
const MOST_COOKIES: usize = 50;
/// A longer one is not kept, so that requests don't grow without end.
const LONGEST_BYTES: usize = 4096;
/// A later end is none.
const LONGEST_LIFE_S: u64 = 1_000_000_000;

#[derive(Debug)]
struct Cookie {
    /// As `name=value`.
    pair: Vec<u8>,
    name_bytes: usize,
    path: String,
    /// None where it ends with the session.
    ends: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct CookieJar {
    /// Those of longer paths first, as they are sent.
    cookies: Vec<Cookie>,
}

impl CookieJar {
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Takes over every `Set-Cookie` of the head of an answer to a request for a path.
    pub fn keep(&mut self, head: &[u8], asked: &str) {
        for line in head.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            if line[..colon].eq_ignore_ascii_case(b"set-cookie") {
                self.set(line[colon + 1..].trim_ascii(), asked);
            }
        }
    }

    /// Appends the value of a `Cookie` field for a path behind `before`; false where there is none.
    pub fn write(&self, path: &str, before: &[u8], to: &mut Vec<u8>) -> bool {
        let mut any = false;
        for cookie in self.cookies.iter().filter(|cookie| cookie.goes_to(path)) {
            to.extend_from_slice(if any { b"; " } else { before });
            to.extend_from_slice(&cookie.pair);
            any = true;
        }
        any
    }

    /// The value of a cookie, whatever path it is for.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let cookie = self.cookies.iter().find(|cookie| cookie.name() == name)?;
        Some(&cookie.pair[cookie.name_bytes + 1..])
    }

    fn set(&mut self, text: &[u8], asked: &str) {
        let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let attributes = Attributes::read(parts);
        let path = attributes.path.unwrap_or_else(|| default_path(asked).to_owned());
        self.cookies.retain(|known| known.name() != name || known.path != path);
        if name.is_empty() || pair.len() > LONGEST_BYTES || attributes.is_gone {
            return;
        }
        if self.cookies.len() == MOST_COOKIES {
            self.cookies.remove(0);
        }
        let pair = [name, value].join(&b'=');
        let cookie = Cookie { pair, name_bytes: name.len(), path, ends: attributes.ends };
        let place = self.cookies.iter().position(|other| other.path.len() < cookie.path.len());
        self.cookies.insert(place.unwrap_or(self.cookies.len()), cookie);
    }
}

impl Cookie {
    fn name(&self) -> &[u8] {
        &self.pair[..self.name_bytes]
    }

    /// RFC 6265 section 5.1.4.
    fn goes_to(&self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let fits = path.strip_prefix(&*self.path).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        });
        fits && self.ends.is_none_or(|ends| Instant::now() < ends)
    }
}

/// The path of a cookie that names none.
fn default_path(asked: &str) -> &str {
    let path = asked.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        Some(end) if end > 0 => &path[..end],
        _ => "/",
    }
}

#[derive(Default)]
struct Attributes {
    path: Option<String>,
    ends: Option<Instant>,
    is_gone: bool,
}

impl Attributes {
    /// `Max-Age` has precedence, and what makes no sense is ignored.
    fn read<'a>(attributes: impl Iterator<Item = &'a [u8]>) -> Attributes {
        let (mut path, mut max_age, mut expires) = (None, None, None);
        for attribute in attributes.filter_map(|bytes| str::from_utf8(bytes).ok()) {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            match name.trim() {
                name if name.eq_ignore_ascii_case("path") => {
                    path = value.starts_with('/').then(|| value.to_owned());
                }
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
        let expires_s = expires.map(|date| (date.to_utc() - Utc::now()).num_seconds());
        let life_s = max_age.or(expires_s);
        let ends = life_s
            .and_then(|life_s| u64::try_from(life_s).ok())
            .filter(|life_s| *life_s < LONGEST_LIFE_S)
            .map(|life_s| Instant::now() + Duration::from_secs(life_s));
        Attributes { path, ends, is_gone: life_s.is_some_and(|life_s| life_s <= 0) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(jar: &CookieJar, path: &str) -> String {
        let mut text = Vec::new();
        let any = jar.write(path, b"", &mut text);
        assert_eq!(any, !text.is_empty());
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn keeps_replaces_and_removes() {
        let mut jar = CookieJar::default();
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=2\r\n\r\n", "/");
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=3\r\nSet-Cookie: nonsense\r\n\r\n", "/x");
        assert_eq!(written(&jar, "/"), "b=2; a=3");
        assert_eq!(jar.value(b"a"), Some(&b"3"[..]));
        jar.keep(b"Set-Cookie: b=; Max-Age=0\r\nSet-Cookie: a=; max-age=0\r\n\r\n", "/");
        assert_eq!(written(&jar, "/"), "");
        assert_eq!(jar.value(b"a"), None);
    }

    #[test]
    fn paths_say_where_cookies_go() {
        let mut jar = CookieJar::default();
        let head =
            b"Set-Cookie: root=1; Path=/\r\nSet-Cookie: app=2; path=/app; Secure; HttpOnly\r\n\
                     Set-Cookie: own=3; Domain=example.com\r\nSet-Cookie: odd=4; Path=nowhere\r\n";
        jar.keep(head, "/app/login?next=/x/y");
        assert_eq!(written(&jar, "/"), "root=1");
        assert_eq!(written(&jar, "/application"), "root=1");
        assert_eq!(written(&jar, "/app?a=/b"), "app=2; own=3; odd=4; root=1");
        assert_eq!(written(&jar, "/app/x"), "app=2; own=3; odd=4; root=1");
        // The same name for another path is another cookie.
        jar.keep(b"Set-Cookie: root=5; Path=/app/x\r\n", "/");
        assert_eq!(written(&jar, "/app/x/y"), "root=5; app=2; own=3; odd=4; root=1");
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
            ("Max-Age=9223372036854775807", false),
        ] {
            let mut jar = CookieJar::default();
            jar.keep(b"Set-Cookie: a=1\r\n", "/");
            jar.keep(format!("Set-Cookie: a=; {attributes}\r\n").as_bytes(), "/");
            assert_eq!(written(&jar, "/").is_empty(), gone, "{attributes}");
        }
    }

    #[test]
    fn a_cookie_ends_when_it_was_said_to() {
        let mut jar = CookieJar::default();
        jar.keep(b"Set-Cookie: a=1; Max-Age=60\r\n", "/");
        assert_eq!(written(&jar, "/"), "a=1");
        jar.cookies[0].ends = Some(Instant::now());
        assert_eq!(written(&jar, "/"), "");
    }

    #[test]
    fn a_jar_has_bounds() {
        let mut jar = CookieJar::default();
        for nth in 0..1000 {
            jar.keep(format!("Set-Cookie: n{nth}=1\r\n").as_bytes(), "/");
        }
        jar.keep(format!("Set-Cookie: long={}\r\n", "x".repeat(LONGEST_BYTES)).as_bytes(), "/");
        let text = written(&jar, "/");
        assert_eq!(text.split("; ").count(), MOST_COOKIES);
        assert!(text.starts_with("n950=1; ") && text.ends_with("; n999=1"), "{text}");
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(head: Vec<u8>, path in "/.{0,20}") {
            let mut jar = CookieJar::default();
            jar.keep(&head, &path);
            jar.keep(&[b"Set-Cookie:", &head[..]].concat(), &path);
            let mut text = Vec::new();
            jar.write(&path, b"", &mut text);
            prop_assert!(!text.contains(&b'\n'));
        }

        #[test]
        fn what_is_given_is_sent_back(
            given in prop::collection::vec(("[a-z]{1,3}", "[!-:<-~]{0,9}"), 1..9)
        ) {
            let mut jar = CookieJar::default();
            let mut wanted: Vec<(String, String)> = Vec::new();
            for (name, value) in given {
                jar.keep(format!("Set-Cookie: {name}={value}; Path=/\r\n").as_bytes(), "/x/y");
                wanted.retain(|(known, _)| *known != name);
                wanted.push((name, value));
            }
            let pairs: Vec<_> = wanted.iter().map(|(name, value)| format!("{name}={value}")).collect();
            prop_assert_eq!(written(&jar, "/any"), pairs.join("; "));
        }
    }
}
