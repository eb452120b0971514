//! Tags of a page as they are written (HTML Living Standard, 13.2.5).

use memchr::{memchr, memchr3, memmem};

/// A tag as it stands in a page.
pub struct Tag<'a> {
    pub name: &'a [u8],
    /// What follows the name, up to the end.
    inside: &'a [u8],
    pub closes: bool,
    pub closes_itself: bool,
    /// Where it ends.
    pub end: usize,
}

impl Tag<'_> {
    /// The value of an attribute as it is written; the first of several counts.
    pub fn attribute(&self, wanted: &str) -> Option<&[u8]> {
        let mut rest = self.inside;
        loop {
            rest = after(rest, |byte| byte.is_ascii_whitespace() || *byte == b'/');
            // A name may begin with an equals sign (13.2.5.32).
            let skipped = usize::from(rest.first()? == &b'=');
            let length = rest[skipped..]
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/'))
                .map_or(rest.len(), |length| length + skipped);
            let (name, behind) = rest.split_at(length);
            let behind = after(behind, u8::is_ascii_whitespace);
            let (value, next) = match behind.strip_prefix(b"=") {
                None => (&b""[..], behind),
                Some(value) => value_at(after(value, u8::is_ascii_whitespace)),
            };
            if name.eq_ignore_ascii_case(wanted.as_bytes()) {
                return Some(value);
            }
            rest = next;
        }
    }
}

fn after(text: &[u8], passes: impl Fn(&u8) -> bool) -> &[u8] {
    let end = text.iter().position(|byte| !passes(byte)).unwrap_or(text.len());
    &text[end..]
}

fn value_at(text: &[u8]) -> (&[u8], &[u8]) {
    match text.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let end = memchr(*quote, &text[1..]).map_or(text.len(), |end| end + 1);
            (&text[1..end], text.get(end + 1..).unwrap_or_default())
        }
        _ => {
            let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
            text.split_at(end)
        }
    }
}

/// The next tag from there on; comments are passed over.
pub fn next_tag(page: &[u8], mut at: usize) -> Option<Tag<'_>> {
    loop {
        at += memchr(b'<', page.get(at..)?)? + 1;
        let rest = &page[at..];
        match rest.first()? {
            b'!' if rest.starts_with(b"!--") => at += memmem::find(rest, b"-->")? + 3,
            b'!' | b'?' => at += memchr(b'>', rest)? + 1,
            b'/' if rest.get(1).is_some_and(u8::is_ascii_alphabetic) => {
                return tag_at(page, at + 1, true);
            }
            first if first.is_ascii_alphabetic() => return tag_at(page, at, false),
            _ => {}
        }
    }
}

/// The tag whose name begins there; nothing where the page ends within.
fn tag_at(page: &[u8], at: usize, closes: bool) -> Option<Tag<'_>> {
    let rest = &page[at..];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let name = &rest[..rest.iter().position(is_end)?];
    let inside_at = at + name.len();
    let mut end = inside_at;
    loop {
        end += memchr3(b'"', b'\'', b'>', &page[end..])?;
        match page[end] {
            b'>' => break,
            // A lone quotation mark quotes nothing.
            quote => end += memchr(quote, &page[end + 1..]).map_or(1, |length| length + 2),
        }
    }
    let inside = &page[inside_at..end];
    Some(Tag { name, inside, closes, closes_itself: inside.ends_with(b"/"), end: end + 1 })
}

/// Where the end tag of an element begins whose content is no markup.
pub fn end_of_raw(page: &[u8], from: usize, name: &[u8]) -> usize {
    let mut ends = memmem::find_iter(&page[from..], b"</").map(|at| from + at);
    let is_own = |at: &usize| {
        page.get(at + 2..at + 2 + name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    ends.find(is_own).unwrap_or(page.len())
}
