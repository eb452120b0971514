//! Texts with places that a user's values fill: `{{name}}`.

use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// What need not be encoded anywhere in a URL or a form (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How a value is written where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Raw,
    /// In a header field, which ends with its line.
    Field,
    /// In a path, a query or a form.
    Url,
    /// In a string of JSON.
    Json,
    /// A link as a page has it, behind the slash that a path begins with.
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    /// The number of a value.
    Value(usize, Encoding),
}

#[derive(Debug, Clone, Default)]
pub struct Template(Vec<Part>);

impl Encoding {
    /// In a body of a media type.
    pub fn of_body(content_type: Option<&str>) -> Encoding {
        let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        match essence.trim().to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => Encoding::Url,
            // RFC 6839 section 3.1.
            kind if kind == "application/json" || kind.ends_with("+json") => Encoding::Json,
            _ => Encoding::Raw,
        }
    }
}

impl Template {
    /// What no value is named by is text like any other.
    pub fn parse(text: &[u8], encoding: Encoding, names: &[String]) -> Template {
        let mut parts = Vec::new();
        let (mut begins, mut at) = (0, 0);
        while let Some(distance) = memmem::find(&text[at..], b"{{") {
            let open = at + distance;
            let Some(length) = memmem::find(&text[open..], b"}}") else { break };
            let inner = &text[open + 2..open + length];
            match number_of(inner, names) {
                None => at = open + 1,
                Some(number) => {
                    if open > begins {
                        parts.push(Part::Text(text[begins..open].into()));
                    }
                    parts.push(Part::Value(number, encoding));
                    at = open + length + 2;
                    begins = at;
                }
            }
        }
        if begins < text.len() {
            parts.push(Part::Text(text[begins..].into()));
        }
        Template(parts)
    }

    /// A path, whose first value is a link where the path begins with it.
    pub fn path(text: &[u8], begins_with_link: bool, names: &[String]) -> Template {
        let mut template = Template::parse(text, Encoding::Url, names);
        if let Some(Part::Value(_, encoding)) = template.0.get_mut(1).filter(|_| begins_with_link) {
            *encoding = Encoding::Link;
        }
        template
    }

    pub fn write(&self, values: &[Vec<u8>], to: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Text(text) => to.extend_from_slice(text),
                Part::Value(number, encoding) => encode(&values[*number], *encoding, to),
            }
        }
    }

    /// Numbers of the values in it.
    pub fn values(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(number, _) => Some(*number),
        })
    }
}

/// Which value is named there, with spaces around or without.
fn number_of(inner: &[u8], names: &[String]) -> Option<usize> {
    names.iter().position(|name| name.as_bytes() == inner.trim_ascii())
}

fn encode(value: &[u8], encoding: Encoding, to: &mut Vec<u8>) {
    match encoding {
        Encoding::Raw => to.extend_from_slice(value),
        Encoding::Field => to.extend(value.iter().filter(|byte| !byte.is_ascii_control())),
        Encoding::Url => to.extend(percent_encode(value, RESERVED).flat_map(str::bytes)),
        Encoding::Json => {
            let quoted = serde_json::to_vec(&String::from_utf8_lossy(value)).unwrap_or_default();
            to.extend_from_slice(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
        }
        Encoding::Link => {
            for byte in path_of(value) {
                match byte {
                    b'!'..=b'~' => to.push(*byte),
                    other => to.extend(percent_encode(&[*other], RESERVED).flat_map(str::bytes)),
                }
            }
        }
    }
}

/// Path and query of a link, without the slash at the beginning.
fn path_of(link: &[u8]) -> &[u8] {
    let link = link.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
    let is_query = |byte: &u8| *byte == b'?';
    let before_query = link.split(is_query).next().unwrap_or_default();
    let host = match memmem::find(before_query, b"://") {
        Some(scheme) => Some(scheme + 3),
        None => link.starts_with(b"//").then_some(2),
    };
    let path = match host {
        None => link,
        Some(at) => {
            let rest = &link[at..];
            let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
            path.map_or(&b""[..], |path| &rest[path..])
        }
    };
    path.strip_prefix(b"/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 2] = ["a", "row.b"];

    fn filled(text: &str, encoding: Encoding, value: &str) -> String {
        let template = Template::parse(text.as_bytes(), encoding, &NAMES.map(Into::into));
        with(&template, value)
    }

    fn with(template: &Template, value: &str) -> String {
        let mut to = Vec::new();
        template.write(&[value.into(), b"B".to_vec()], &mut to);
        String::from_utf8(to).expect("text")
    }

    #[test]
    fn fills_what_is_named_and_nothing_else() {
        let raw = |text| filled(text, Encoding::Raw, "x");
        assert_eq!(raw("<{{a}}|{{ row.b }}>{{a}}"), "<x|B>x");
        for text in ["{{c}}", "{{a", "{{a|url}}", "{{{{", "}}", "{{}}", "{ {a}}"] {
            assert_eq!(raw(text), text);
        }
        assert_eq!(raw("{{{a}}}"), "{x}");
        assert_eq!(raw("{{{{a}}"), "{{x");
    }

    #[test]
    fn values_are_written_as_their_place_needs() {
        let value = "a b+/=&\"é\r\n";
        assert_eq!(filled("{{a}}", Encoding::Url, value), "a%20b%2B%2F%3D%26%22%C3%A9%0D%0A");
        assert_eq!(filled("{{a}}", Encoding::Json, value), "a b+/=&\\\"é\\r\\n");
        assert_eq!(filled("{{a}}", Encoding::Field, value), "a b+/=&\"é");
    }

    #[test]
    fn links_become_paths() {
        for (link, path) in [
            ("/a/b?c=d#e", "/a/b?c=d"),
            ("http://127.0.0.1:80/a", "/a"),
            ("//host/a b", "/a%20b"),
            ("http://host", "/"),
            ("https://host?q", "/?q"),
            ("a", "/a"),
            ("/login?next=http://x/y", "/login?next=http://x/y"),
            ("", "/"),
        ] {
            let template = Template::path(b"/{{a}}", true, &NAMES.map(Into::into));
            assert_eq!(with(&template, link), path, "{link}");
        }
        let template = Template::path(b"/{{a}}", false, &NAMES.map(Into::into));
        assert_eq!(with(&template, "/a"), "/%2Fa");
    }

    #[test]
    fn bodies_are_written_by_their_type() {
        for (content_type, encoding) in [
            (None, Encoding::Raw),
            (Some("text/plain"), Encoding::Raw),
            (Some("Application/JSON; charset=utf-8"), Encoding::Json),
            (Some("application/vnd.api+json"), Encoding::Json),
            (Some("application/x-www-form-urlencoded"), Encoding::Url),
        ] {
            assert_eq!(Encoding::of_body(content_type), encoding, "{content_type:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_without_places_stays(text in ".*") {
            let mut to = Vec::new();
            Template::parse(text.as_bytes(), Encoding::Raw, &[]).write(&[], &mut to);
            prop_assert_eq!(to, text.as_bytes());
        }

        #[test]
        fn no_value_ends_a_line_of_a_head(value: Vec<u8>) {
            for encoding in [Encoding::Field, Encoding::Url, Encoding::Link] {
                let mut to = Vec::new();
                encode(&value, encoding, &mut to);
                prop_assert!(!to.iter().any(u8::is_ascii_control));
            }
        }
    }
}
