//! One element of a page: tags are gone through until a selector fits.
//!
//! A page is no tree here. That is enough for what carries tokens, inputs, meta elements and links,
//! and costs a hundredth of what a parser of HTML takes.

use std::collections::HashMap;

use memchr::{memchr, memmem};

use super::references::decoded;
use super::tags::{Tag, end_of_raw, next_tag};

/// Elements without content (HTML Living Standard, 13.1.2).
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];
/// What stands in these is no markup (13.2.5.1).
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
const UNKNOWN: &str = "takes names, #id, .class, [attribute], [attribute=value] (also ^=, $=, *=, \
                       ~=) and spaces between; for more use a regular expression";

/// A selector of CSS: what the last part selects, within elements that the others select.
#[derive(Debug, Clone)]
pub struct Selector(Vec<Compound>);

#[derive(Debug, Clone, Default)]
struct Compound {
    name: Option<String>,
    tests: Vec<Test>,
}

#[derive(Debug, Clone)]
struct Test {
    attribute: String,
    how: How,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Present,
    Equal,
    Begins,
    Ends,
    Contains,
    Word,
}

impl Selector {
    pub fn parse(text: &str) -> Result<Selector, String> {
        let wrong = || format!("css {text:?}: {UNKNOWN}");
        let mut parts = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (compound, after) = Compound::parse(rest).ok_or_else(wrong)?;
            let next = after.trim_start();
            if !next.is_empty() && next.len() == after.len() {
                return Err(wrong());
            }
            parts.push(compound);
            rest = next;
        }
        if parts.is_empty() { Err(wrong()) } else { Ok(Selector(parts)) }
    }

    /// The value of an attribute of the first element that it selects or, where none is named, what
    /// it is there for.
    pub fn find(&self, page: &[u8], attribute: Option<&str>) -> Option<Vec<u8>> {
        let (last, around) = self.0.split_last()?;
        let mut open: Vec<(Vec<u8>, usize)> = Vec::new();
        // How many of each name are open: looking through all for what none ends would take a
        // hostile page's square.
        let mut names: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut at = 0;
        while let Some(tag) = next_tag(page, at) {
            at = tag.end;
            let name = tag.name.to_ascii_lowercase();
            if tag.closes {
                if names.contains_key(&name) {
                    while let Some((ended, _)) = open.pop() {
                        forget(&mut names, &ended);
                        if ended == name {
                            break;
                        }
                    }
                }
                continue;
            }
            let within = open.last().map_or(0, |(_, within)| *within);
            if within == around.len() && last.fits(&name, &tag) {
                return value_of(page, &name, &tag, attribute);
            }
            let is_raw = RAW.iter().any(|raw| raw.as_bytes() == name);
            if is_raw {
                at = end_of_raw(page, at, &name);
            } else if !around.is_empty()
                && !tag.closes_itself
                && !VOID.iter().any(|void| void.as_bytes() == name)
            {
                let fits = around.get(within).is_some_and(|part| part.fits(&name, &tag));
                *names.entry(name.clone()).or_default() += 1;
                open.push((name, within + usize::from(fits)));
            }
        }
        None
    }
}

/// Count one less of a name.
fn forget(names: &mut HashMap<Vec<u8>, usize>, name: &[u8]) {
    if let Some(count) = names.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            names.remove(name);
        }
    }
}

impl Compound {
    /// The compound that a text begins with, and what follows.
    fn parse(text: &str) -> Option<(Compound, &str)> {
        let mut compound = Compound::default();
        let mut rest = text;
        if let Some(after) = rest.strip_prefix('*') {
            rest = after;
        } else if let Some((name, after)) = identifier(rest) {
            compound.name = Some(name.to_ascii_lowercase());
            rest = after;
        }
        while let Some(first) = rest.chars().next() {
            let (test, after) = match first {
                '#' | '.' => {
                    let (value, after) = identifier(&rest[1..])?;
                    let (attribute, how) =
                        if first == '#' { ("id", How::Equal) } else { ("class", How::Word) };
                    let attribute = attribute.into();
                    (Test { attribute, how, value: value.into() }, after)
                }
                '[' => Test::parse(&rest[1..])?,
                _ => break,
            };
            compound.tests.push(test);
            rest = after;
        }
        (rest.len() < text.len()).then_some((compound, rest))
    }

    fn fits(&self, name: &[u8], tag: &Tag) -> bool {
        self.name.as_ref().is_none_or(|wanted| wanted.as_bytes() == name)
            && self.tests.iter().all(|test| {
                tag.attribute(&test.attribute).is_some_and(|value| test.fits(&decoded(value)))
            })
    }
}

impl Test {
    /// What stands in square brackets, the first one passed.
    fn parse(text: &str) -> Option<(Test, &str)> {
        let (name, rest) = identifier(text.trim_start())?;
        let attribute = name.to_ascii_lowercase();
        let rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(']') {
            return Some((Test { attribute, how: How::Present, value: String::new() }, after));
        }
        let signs = [
            ("=", How::Equal),
            ("^=", How::Begins),
            ("$=", How::Ends),
            ("*=", How::Contains),
            ("~=", How::Word),
        ];
        let (how, rest) = signs
            .into_iter()
            .find_map(|(sign, how)| Some((how, rest.strip_prefix(sign)?.trim_start())))?;
        let (value, rest) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].split_once(quote)?,
            _ => {
                let end = rest.find([']', ' '])?;
                rest.split_at(end)
            }
        };
        let after = rest.trim_start().strip_prefix(']')?;
        Some((Test { attribute, how, value: value.into() }, after))
    }

    fn fits(&self, value: &[u8]) -> bool {
        let wanted = self.value.as_bytes();
        match self.how {
            How::Present => true,
            How::Equal => value == wanted,
            How::Begins => value.starts_with(wanted),
            How::Ends => value.ends_with(wanted),
            How::Contains => memmem::find(value, wanted).is_some(),
            How::Word => value.split(u8::is_ascii_whitespace).any(|word| word == wanted),
        }
    }
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn value_of(page: &[u8], name: &[u8], tag: &Tag, attribute: Option<&str>) -> Option<Vec<u8>> {
    let usual = match name {
        b"input" => Some("value"),
        b"meta" => Some("content"),
        _ => None,
    };
    if let Some(attribute) = attribute.or(usual) {
        return tag.attribute(attribute).map(decoded);
    }
    let text = &page[tag.end..];
    let end = match RAW.iter().any(|raw| raw.as_bytes() == name) {
        true => end_of_raw(page, tag.end, name) - tag.end,
        false => memchr(b'<', text).unwrap_or(text.len()),
    };
    Some(decoded(text[..end].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = r#"<!DOCTYPE html><html><head><title>a <input name=csrf value=no></title>
        <meta name="csrf-token" content='m&amp;1'><script>if (a<b) { x = "<input name='csrf' value='js'>" }</script>
        <!-- <input name=csrf value=comment> --></head><body><p class="a b">one<p>two
        <form id=search><INPUT Name="csrf" value="search"></form>
        <form id="login" action='/a>b'><input type=hidden name='csrf'
          value="a&quot;b&#43;c&#x2F;d&#x3D;" /><a href="/x?a=1&amp;b=2">Go &gt;</a></form></body></html>"#;

    fn value(selector: &str, attribute: Option<&str>) -> Option<String> {
        let selector = Selector::parse(selector).expect("a selector");
        let value = selector.find(PAGE.as_bytes(), attribute)?;
        Some(String::from_utf8(value).expect("text"))
    }

    #[test]
    fn finds_the_first_that_fits() {
        for (selector, attribute, wanted) in [
            ("input[name=csrf]", None, Some("search")),
            ("#login input[name=csrf]", None, Some("a\"b+c/d=")),
            ("body form#login input", Some("type"), Some("hidden")),
            ("meta[name='csrf-token']", None, Some("m&1")),
            ("form[action$='>b']", Some("id"), Some("login")),
            ("a", None, Some("Go >")),
            ("a[href^=\"/x?a=1&b\"]", Some("href"), Some("/x?a=1&b=2")),
            ("p.b", None, Some("one")),
            ("[class~=b][class*=' ']", Some("class"), Some("a b")),
            ("title", None, Some("a <input name=csrf value=no>")),
            ("* #login", Some("action"), Some("/a>b")),
            ("#search a", None, None),
            ("form form", None, None),
            ("input", Some("nope"), None),
            ("select", None, None),
        ] {
            assert_eq!(value(selector, attribute).as_deref(), wanted, "{selector}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for bad in
            ["", " ", "a > b", "a,b", "a:first-child", "[", "[a", "[a=]b", "#", ".", "a[b|=c]"]
        {
            assert!(Selector::parse(bad).is_err_and(|why| why.contains("[attribute]")), "{bad}");
        }
    }

    fn escaped(text: &str) -> String {
        let pairs = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")];
        pairs.iter().fold(text.to_owned(), |text, (letter, name)| text.replace(letter, name))
    }

    #[test]
    fn ends_of_nothing_cost_no_more_than_they_are_long() {
        let many = 300_000;
        let page = [&b"<a>".repeat(many)[..], &b"</b>".repeat(many), b"<a><i id=x>y"].concat();
        let selector = Selector::parse("a i").expect("a selector");
        assert_eq!(selector.find(&page, None).as_deref(), Some(&b"y"[..]));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(page: Vec<u8>, tags in "(<[a-z]{1,3}[ ='\"/>]*|</[a-z]>|<!--|-->|&#?x?;){0,30}") {
            let selector = Selector::parse("b a[a=b] i").expect("a selector");
            selector.find(&page, None);
            selector.find(tags.as_bytes(), Some("a"));
            decoded(&page);
        }

        #[test]
        fn no_selector_breaks_it(text in ".{0,20}", page in "(<[abc][ =\"a-z]*>){0,5}") {
            if let Ok(selector) = Selector::parse(&text) {
                selector.find(page.as_bytes(), None);
            }
        }

        #[test]
        fn any_value_is_found_again(value: String, text in "[^<]{0,20}") {
            let page = format!("<p>{}<input name=other value=x><input value=\"{}\" name=t>",
                               escaped(&text), escaped(&value));
            let read = Selector::parse("input[name=t]").expect("a selector").find(page.as_bytes(), None);
            prop_assert_eq!(read, Some(value.into_bytes()));
        }
    }
}
