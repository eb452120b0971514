//! The chunked transfer coding (RFC 9112 section 7.1), decoded byte by byte between chunks and
//! in one step within them.

use super::head::{MAX_HEAD_BYTES, Malformed};

/// A size line, its extensions included, may not be longer than this.
const MAX_SIZE_LINE_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the size, with whether a digit was seen.
    Size(bool),
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line (or the final empty one).
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    Done,
}

/// Where a decoder stands in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunked {
    place: Place,
    /// Size of the chunk while it is read, then what is left of it.
    left: u64,
    line_bytes: usize,
}

impl Chunked {
    pub fn begin() -> Self {
        Chunked { place: Place::Size(false), left: 0, line_bytes: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.place == Place::Done
    }

    /// Bytes of chunk data that come next for certain.
    pub fn opaque(&self) -> u64 {
        if self.place == Place::Data { self.left } else { 0 }
    }

    /// Passes `count` bytes of chunk data, at most [`Self::opaque`].
    pub fn skip(&mut self, count: u64) {
        self.left -= count;
        if self.left == 0 {
            self.place = Place::DataCr;
        }
    }

    /// Decodes `input`, hands data to `sink`, and says how many bytes were used.
    pub fn feed(&mut self, input: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            if self.place == Place::Data {
                let data = self.left.min((input.len() - at) as u64) as usize;
                sink(&input[at..at + data]);
                self.skip(data as u64);
                at += data;
            } else {
                self.step(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        self.place = match (self.place, byte) {
            (Place::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (Place::Size(true), b'\r') => Place::SizeLf,
            (Place::Size(true), b';' | b' ' | b'\t') => Place::Extension,
            (Place::Extension, b'\r') => Place::SizeLf,
            (Place::Extension, b'\n') => return Err(Malformed::Chunk),
            (Place::Extension, _) => self.longer(MAX_SIZE_LINE_BYTES, Malformed::Chunk)?,
            (Place::SizeLf, b'\n') => self.chunk_begins(),
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Size(false),
            (Place::TrailerStart, b'\r') => Place::EndLf,
            (Place::TrailerStart | Place::Trailer, b'\n') => return Err(Malformed::Chunk),
            (Place::Trailer, b'\r') => Place::TrailerLf,
            (Place::TrailerStart | Place::Trailer, _) => {
                self.place = Place::Trailer;
                self.longer(MAX_HEAD_BYTES, Malformed::TrailerTooLong)?
            }
            (Place::TrailerLf, b'\n') => Place::TrailerStart,
            (Place::EndLf, b'\n') => Place::Done,
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<Place, Malformed> {
        let digit = (byte as char).to_digit(16).ok_or(Malformed::Chunk)?;
        let shifted = self.left.checked_mul(16).ok_or(Malformed::Chunk)?;
        self.left = shifted + u64::from(digit);
        self.line_bytes += 1;
        if self.line_bytes > MAX_SIZE_LINE_BYTES {
            return Err(Malformed::Chunk);
        }
        Ok(Place::Size(true))
    }

    fn longer(&mut self, limit: usize, error: Malformed) -> Result<Place, Malformed> {
        self.line_bytes += 1;
        if self.line_bytes > limit { Err(error) } else { Ok(self.place) }
    }

    fn chunk_begins(&mut self) -> Place {
        self.line_bytes = 0;
        if self.left == 0 { Place::TrailerStart } else { Place::Data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<(String, usize, bool), Malformed> {
        let mut body = Vec::new();
        let mut chunked = Chunked::begin();
        let used = chunked.feed(text.as_bytes(), |data| body.extend_from_slice(data))?;
        Ok((String::from_utf8_lossy(&body).into_owned(), used, chunked.is_done()))
    }

    #[test]
    fn decodes_extensions_and_trailers() {
        let text = "4;a=b\r\nWiki\r\n05 \r\npedia\r\n0\r\nX: y\r\nZ: w\r\n\r\n";
        assert_eq!(decode(text), Ok(("Wikipedia".into(), text.len(), true)));
        let followed = format!("{text}more");
        assert_eq!(decode(&followed), Ok(("Wikipedia".into(), text.len(), true)));
    }

    #[test]
    fn refuses_broken_chunks() {
        for bad in ["\r\n", "x\r\n", "-1\r\n", "4\nWiki", "4\r\nWikipedia", ";\r\n", "1\r\nab"] {
            assert_eq!(decode(bad), Err(Malformed::Chunk), "{bad:?}");
        }
        assert_eq!(decode("fffffffffffffffff\r\n"), Err(Malformed::Chunk));
    }
}
