//! Character references of HTML, such as `&amp;`.

use memchr::memchr;

/// The longest reference that is understood: `&#x10FFFF;`.
const LONGEST_REFERENCE: usize = 10;

/// A text with its character references replaced: those that programs write for what can't stand
/// there, and numbers.
pub fn decoded(text: &[u8]) -> Vec<u8> {
    let mut to = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest) {
        to.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let window = &rest[..rest.len().min(LONGEST_REFERENCE)];
        let letter = memchr(b';', window).and_then(|end| Some((reference(&rest[1..end])?, end)));
        let used = match letter {
            Some((letter, end)) => {
                to.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                end + 1
            }
            None => {
                to.push(b'&');
                1
            }
        };
        rest = &rest[used..];
    }
    to.extend_from_slice(rest);
    to
}

fn reference(name: &[u8]) -> Option<char> {
    match name {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        b"nbsp" => Some('\u{a0}'),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    // The standard library would take a sign.
    let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_references() {
        for (text, wanted) in [
            ("&lt;a&gt; &amp;amp; &quot;&apos;&#39;&#x27;", "<a> &amp; \"'''"),
            (
                "a&b; &; & &# &#x; &#xD800; &#+1; &nope; &amp",
                "a&b; &; & &# &#x; &#xD800; &#+1; &nope; &amp",
            ),
            ("&#128512;", "😀"),
        ] {
            assert_eq!(String::from_utf8(decoded(text.as_bytes())).expect("text"), wanted);
        }
    }
}
