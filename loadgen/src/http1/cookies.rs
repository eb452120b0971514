//! Cookies as far as load needs them: what a connection is given it sends back. Attributes are
//! ignored, but for a `Max-Age` of 0 that takes a cookie away (RFC 6265 section 5.2.2).

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
        let gone = parts.any(|part| part.eq_ignore_ascii_case(b"max-age=0"));
        if !name.is_empty() && !gone {
            self.cookies.push([name, value].join(&b'='));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_replaces_and_removes() {
        let mut jar = CookieJar::default();
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=2\r\n\r\n");
        jar.keep(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=3\r\nSet-Cookie: nonsense\r\n\r\n");
        let mut text = Vec::new();
        jar.write(&mut text);
        assert_eq!(text, b"b=2; a=3");
        jar.keep(b"Set-Cookie: b=; Max-Age=0\r\nSet-Cookie: a=; max-age=0\r\n\r\n");
        assert!(jar.is_empty());
    }
}
