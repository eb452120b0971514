//! One request as its users write it, each with values and cookies of its own, and what they take
//! from its answer.

use std::ops::Range;

use memchr::memmem;

use super::capture::{Capture, Seen, decoded};
use super::references;
use super::template::{Encoding, Template};
use super::values::Sources;
use crate::http1::cookies::CookieJar;
use crate::http1::request::{content_length, fields};
use crate::order::Request;
use crate::target::Target;

#[derive(Debug)]
pub struct Script {
    method: Vec<u8>,
    path: Template,
    /// The other header fields, each with its line's end.
    head: Template,
    /// What the `Cookie` field has next to the jar's, its name as it is written.
    cookie: Option<Template>,
    has_length: bool,
    may_close: bool,
    body: Template,
    captures: Vec<Capture>,
    contains: Vec<Sought>,
    /// The body of its answer is looked into.
    pub reads_body: bool,
}

/// A text that an answer should contain.
#[derive(Debug)]
struct Sought {
    written: String,
    template: Template,
}

impl Sought {
    fn new(written: &String, names: &[String]) -> Sought {
        let template = Template::parse(written.as_bytes(), Encoding::Raw, names);
        Sought { written: written.clone(), template }
    }

    /// A user's values stand in it as they are, or as HTML has them.
    fn is_in(&self, body: &[u8], values: &[Vec<u8>]) -> bool {
        if self.template.values().next().is_none() {
            return memmem::find(body, self.written.as_bytes()).is_some();
        }
        let mut text = Vec::new();
        self.template.write(values, &mut text);
        memmem::find(body, &text).is_some()
            || memmem::find(&references::decoded(body), &text).is_some()
    }
}

impl Script {
    pub fn new(request: &Request, target: &Target, sources: &Sources) -> Result<Script, String> {
        let names = &sources.names;
        let mut head = Vec::new();
        let mut cookie = None;
        for (name, value) in fields(request, target) {
            if name.eq_ignore_ascii_case("cookie") {
                let field = format!("{name}: {value}");
                cookie = Some(Template::parse(field.as_bytes(), Encoding::Field, names));
                continue;
            }
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let capture = |(name, from): &(String, _)| {
            let value = sources.number(name).unwrap_or_default();
            Capture::new(value, name, from).map_err(|why| format!("capture.{name}: {why}"))
        };
        let captures = request.capture.iter().map(capture).collect::<Result<Vec<_>, _>>()?;
        let sought = |text: &String| Sought::new(text, names);
        let contains: Vec<_> = request.expect.contains.iter().map(sought).collect();
        let body = request.body.as_deref().unwrap_or_default();
        Ok(Script {
            method: request.method.clone().into_bytes(),
            path: Template::path(target.path.as_bytes(), target.begins_with_link, names),
            head: Template::parse(&head, Encoding::Field, names),
            cookie,
            has_length: content_length(request).is_some(),
            may_close: request.header("connection").is_none(),
            body: Template::parse(body, Encoding::of_body(request.header("content-type")), names),
            reads_body: !contains.is_empty() || captures.iter().any(Capture::reads_body),
            captures,
            contains,
        })
    }

    /// Numbers of the values in it.
    pub fn values(&self) -> impl Iterator<Item = usize> {
        let parts = [&self.path, &self.head, &self.body].into_iter().chain(&self.cookie);
        let sought = self.contains.iter().map(|sought| &sought.template);
        parts.chain(sought).flat_map(Template::values)
    }

    /// Numbers of the values that its answer gives.
    pub fn captured(&self) -> impl Iterator<Item = usize> {
        self.captures.iter().map(|capture| capture.value)
    }

    /// Writes the request of a user; gives where its path stands.
    pub fn write(
        &self,
        values: &[Vec<u8>],
        jar: &CookieJar,
        close: bool,
        to: &mut Vec<u8>,
    ) -> Range<usize> {
        to.clear();
        to.extend_from_slice(&self.method);
        to.push(b' ');
        let begins = to.len();
        self.path.write(values, to);
        let path = begins..to.len();
        to.extend_from_slice(b" HTTP/1.1\r\n");
        self.head.write(values, to);
        self.write_cookies(values, jar, path.clone(), to);
        if close && self.may_close {
            to.extend_from_slice(b"Connection: close\r\n");
        }
        if !self.has_length {
            to.extend_from_slice(b"\r\n");
            self.body.write(values, to);
            return path;
        }
        // Its length is known when it is written.
        let head_bytes = to.len();
        self.body.write(values, to);
        let length = format!("Content-Length: {}\r\n\r\n", to.len() - head_bytes);
        to.splice(head_bytes..head_bytes, length.into_bytes());
        path
    }

    fn write_cookies(
        &self,
        values: &[Vec<u8>],
        jar: &CookieJar,
        path: Range<usize>,
        to: &mut Vec<u8>,
    ) {
        if self.cookie.is_none() && jar.is_empty() {
            return;
        }
        // A request has one such field at most (RFC 6265 section 5.4).
        let before = to.len();
        if let Some(own) = &self.cookie {
            own.write(values, to);
        }
        let path = String::from_utf8_lossy(&to[path]).into_owned();
        let separator = if to.len() > before { &b"; "[..] } else { b"Cookie: " };
        jar.write(&path, separator, to);
        if to.len() > before {
            to.extend_from_slice(b"\r\n");
        }
    }

    /// Takes from a valid answer what the user needs; says what is missing.
    pub fn take(
        &self,
        head: &[u8],
        body: &[u8],
        jar: &CookieJar,
        values: &mut [Vec<u8>],
    ) -> Result<(), String> {
        let body = if self.reads_body { decoded(head, body)? } else { body.into() };
        let seen = Seen { head, body: &body, jar };
        if let Some(missing) = self.contains.iter().find(|sought| !sought.is_in(&body, values)) {
            return Err(format!("it doesn't contain \"{}\"", missing.written.escape_debug()));
        }
        for capture in &self.captures {
            match capture.find(&seen) {
                Some(value) => values[capture.value] = value,
                None => return Err(format!("there is no {} in it", capture.words)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Session;

    const TOKEN: &[u8] = b"a+b=\r\n";

    fn script(request: serde_json::Value) -> Script {
        let mut request = request;
        request["url"] = request.get("url").cloned().unwrap_or("http://h/x/{{t}}?q={{t}}".into());
        let request: Request = serde_json::from_value(request).expect("a request");
        let target = Target::parse(&request.url).expect("a URL");
        let captured = ["t".to_owned()];
        let sources = Sources::new(&Session::default(), captured.iter(), 1).expect("sources");
        Script::new(&request, &target, &sources).expect("a script")
    }

    fn written(script: &Script, jar: &CookieJar, close: bool) -> String {
        let mut to = b"before".to_vec();
        let path = script.write(&[TOKEN.to_vec()], jar, close, &mut to);
        let text = String::from_utf8(to).expect("text");
        assert!(text[path].starts_with('/'));
        text
    }

    #[test]
    fn a_users_request_is_whole() {
        let form = script(serde_json::json!({
            "method": "POST", "headers": {"User-Agent": "", "X-T": "{{t}}", "Cookie": "own={{t}}",
            "Content-Type": "application/x-www-form-urlencoded"}, "body": "t={{t}}&raw={{u}}",
        }));
        let mut jar = CookieJar::default();
        jar.keep(b"Set-Cookie: s=1; Path=/x\r\nSet-Cookie: no=1; Path=/y\r\n", "/");
        let wanted = "POST /x/a%2Bb%3D%0D%0A?q=a%2Bb%3D%0D%0A HTTP/1.1\r\nHost: h\r\n\
                      Content-Type: application/x-www-form-urlencoded\r\nX-T: a+b=\r\n\
                      Cookie: own=a+b=; s=1\r\nConnection: close\r\nContent-Length: 26\r\n\r\n\
                      t=a%2Bb%3D%0D%0A&raw={{u}}";
        assert_eq!(written(&form, &jar, true), wanted);
        let plain = script(serde_json::json!({"url": "http://h/", "headers": {"User-Agent": ""}}));
        assert_eq!(
            written(&plain, &CookieJar::default(), false),
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        assert_eq!(form.values().count(), 5);
    }

    #[test]
    fn what_is_missing_in_an_answer_is_named() {
        let looking = script(serde_json::json!({
            "expect": {"contains": ["Welcome \"you\""]}, "capture": {"t": {"json": "$.t"}},
        }));
        let mut values = [Vec::new()];
        let mut take = |body: &str| {
            let head = b"HTTP/1.1 200 OK\r\n\r\n";
            looking.take(head, body.as_bytes(), &CookieJar::default(), &mut values)
        };
        assert_eq!(take("no"), Err("it doesn't contain \"Welcome \\\"you\\\"\"".into()));
        assert_eq!(take("[Welcome \"you\"]"), Err("there is no {{t}} (json $.t) in it".into()));
        assert_eq!(take("{\"t\": \"5\", \"Welcome \"you\""), Ok(()));
        assert_eq!(values[0], b"5");
    }

    #[test]
    fn a_users_values_are_looked_for_as_they_are_and_as_html_has_them() {
        let looking = script(serde_json::json!({"expect": {"contains": ["Hello {{t}}!"]}}));
        assert_eq!(looking.values().count(), 3);
        let take = |name: &str, body: &str| {
            let jar = CookieJar::default();
            looking.take(b"HTTP/1.1 200 OK\r\n\r\n", body.as_bytes(), &jar, &mut [name.into()])
        };
        assert_eq!(take("ann", "<p>Hello ann!"), Ok(()));
        assert_eq!(take("O'Neil & Co", "<p>Hello O&#39;Neil &amp; Co!"), Ok(()));
        let missing = Err("it doesn't contain \"Hello {{t}}!\"".into());
        assert_eq!(take("ann", "<p>Hello bob!"), missing);
        assert_eq!(take("ann", "<p>Hello {{t}}!"), missing);
    }
}
