//! Header compression (HPACK, RFC 7541): what servers send is decoded, with the table that both sides
//! keep; what we send is encoded so that it needs none, once for all connections.

use std::collections::VecDeque;

use super::code::Fault;
use super::huffman;
use crate::http1::head::MAX_HEAD_BYTES;

/// The most that a table may take (SETTINGS_HEADER_TABLE_SIZE, unless we said another).
pub const TABLE_BYTES: usize = 4096;
/// With its strings an entry counts as so much more (section 4.1).
pub const ENTRY_BYTES: usize = 32;

// How a field begins, and how many bits of its first byte are a number (section 6).
const INDEXED: (u8, u32) = (0x80, 7);
const KEPT: (u8, u32) = (0x40, 6);
const NEW_SIZE: (u8, u32) = (0x20, 5);
const NOT_KEPT: (u8, u32) = (0x00, 4);
const STRING_BITS: u32 = 7;

/// An update of our table's size to nothing, which suits every limit (section 6.3).
pub const NO_TABLE: u8 = NEW_SIZE.0;

/// Appends a field of a list, for which no table is needed.
pub fn encode(name: &str, value: &str, block: &mut Vec<u8>) {
    if let Some(at) = STATIC.iter().position(|field| *field == (name, value)) {
        return encode_number(INDEXED, at + 1, block);
    }
    let named = STATIC.iter().position(|field| field.0 == name);
    encode_number(NOT_KEPT, named.map_or(0, |at| at + 1), block);
    if named.is_none() {
        encode_string(name, block);
    }
    encode_string(value, block);
}

pub fn encode_string(text: &str, block: &mut Vec<u8>) {
    encode_number((0, STRING_BITS), text.len(), block);
    block.extend_from_slice(text.as_bytes());
}

/// Section 5.1.
pub fn encode_number((mark, bits): (u8, u32), number: usize, block: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        return block.push(mark | number as u8);
    }
    block.push(mark | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

#[derive(Debug, Default)]
pub struct Decoder {
    table: Table,
    /// The name of the field at hand, where it is in the table.
    name: Vec<u8>,
    names: Decoded,
    values: Decoded,
}

impl Decoder {
    /// Decodes a list in full, and hands over name and value of each field.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Fault> {
        let mut input = Input::new(block);
        self.names.begin();
        self.values.begin();
        let (mut list_bytes, mut has_begun) = (0, false);
        let mut hand_over = |name: &[u8], value: &[u8]| {
            list_bytes += name.len() + value.len() + ENTRY_BYTES;
            if list_bytes > MAX_HEAD_BYTES {
                return Err(Fault::excess("a list of header fields is too large"));
            }
            take(name, value);
            Ok(())
        };
        while let Some(first) = input.first() {
            let is = |kind: (u8, u32)| first >> kind.1 == kind.0 >> kind.1;
            if is(NEW_SIZE) {
                self.table.set_most(input.number(NEW_SIZE.1)?, has_begun)?;
                continue;
            }
            has_begun = true;
            if is(INDEXED) {
                let (name, value) = self.table.field(input.number(INDEXED.1)?)?;
                hand_over(name, value)?;
                continue;
            }
            let (_, bits) = if is(KEPT) { KEPT } else { NOT_KEPT };
            let name = match input.number(bits)? {
                0 => input.string(STRING_BITS, &mut self.names)?,
                index => {
                    // The entry may go when this one comes (section 4.4).
                    self.name.clear();
                    self.name.extend_from_slice(self.table.field(index)?.0);
                    &self.name
                }
            };
            let value = input.string(STRING_BITS, &mut self.values)?;
            hand_over(name, value)?;
            if is(KEPT) {
                self.table.insert(name, value);
            }
        }
        Ok(())
    }
}

/// What is left of a block.
pub struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    pub fn new(block: &'b [u8]) -> Input<'b> {
        Input { rest: block }
    }

    /// The first byte of what is left.
    pub fn first(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Section 5.1.
    pub fn number(&mut self, bits: u32) -> Result<usize, Fault> {
        let most = (1 << bits) - 1;
        let first = usize::from(self.byte()?) & most;
        if first < most {
            return Ok(first);
        }
        let mut number = most;
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            number += (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Fault::compression("a number in header fields is too large"))
    }

    /// Section 5.2; its length begins with so many bits. It lies in the block, or is decoded.
    pub fn string<'t>(&mut self, bits: u32, decoded: &'t mut Decoded) -> Result<&'t [u8], Fault>
    where
        'b: 't,
    {
        let is_huffman = self.first().is_some_and(|first| first >> bits & 1 == 1);
        let length = self.number(bits)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        if is_huffman { decoded.string(string) } else { Ok(string) }
    }
}

/// So many strings of a list are remembered.
const REMEMBERED: usize = 16;

/// Strings in Huffman's code, which servers mostly send again at the same place of the next list.
#[derive(Debug, Default)]
pub struct Decoded {
    /// As they came, and what they stand for.
    strings: Vec<(Vec<u8>, Vec<u8>)>,
    /// The place of the next one.
    next: usize,
}

impl Decoded {
    /// Another list begins.
    pub fn begin(&mut self) {
        self.next = 0;
    }

    fn string(&mut self, string: &[u8]) -> Result<&[u8], Fault> {
        // Beyond that the last place serves all.
        let place = self.next.min(REMEMBERED - 1);
        if place == self.strings.len() {
            self.strings.push((Vec::new(), Vec::new()));
        }
        let (known, text) = &mut self.strings[place];
        self.next += 1;
        if known != string {
            known.clear();
            text.clear();
            huffman::decode(string, text)?;
            known.extend_from_slice(string);
        }
        Ok(text)
    }
}

const CUT: Fault = Fault::compression("header fields end in the middle");

/// Fields that were sent before, and have a number.
#[derive(Debug)]
struct Table {
    /// Names and values, one after the other; the oldest entries' first.
    text: Vec<u8>,
    entries: VecDeque<Entry>,
    /// As section 4.1 counts.
    bytes: usize,
    most_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: usize,
    name: usize,
    value: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table { text: Vec::new(), entries: VecDeque::new(), bytes: 0, most_bytes: TABLE_BYTES }
    }
}

impl Table {
    /// A static or a dynamic entry (section 2.3.3).
    fn field(&self, index: usize) -> Result<(&[u8], &[u8]), Fault> {
        if let Some((name, value)) = STATIC.get(index.wrapping_sub(1)) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let place = (self.entries.len() + STATIC.len()).checked_sub(index);
        let entry = place.and_then(|place| self.entries.get(place));
        let Entry { begin, name, value } =
            *entry.ok_or(Fault::compression("a header field is not in the table"))?;
        let (name, rest) = self.text[begin..].split_at(name);
        Ok((name, &rest[..value]))
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let bytes = name.len() + value.len() + ENTRY_BYTES;
        self.shrink(self.most_bytes.saturating_sub(bytes));
        if bytes > self.most_bytes {
            return;
        }
        if self.text.len() >= 2 * TABLE_BYTES {
            self.tidy();
        }
        let begin = self.text.len();
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(Entry { begin, name: name.len(), value: value.len() });
        self.bytes += bytes;
    }

    /// Section 6.3; it stands before all fields (section 4.2).
    fn set_most(&mut self, bytes: usize, has_begun: bool) -> Result<(), Fault> {
        if bytes > TABLE_BYTES || has_begun {
            return Err(Fault::compression("the header table's size is changed against the rules"));
        }
        self.most_bytes = bytes;
        self.shrink(bytes);
        Ok(())
    }

    /// The oldest entries go.
    fn shrink(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.name + oldest.value + ENTRY_BYTES;
        }
    }

    /// Drops the strings of entries that have gone.
    fn tidy(&mut self) {
        let begin = self.entries.front().map_or(self.text.len(), |oldest| oldest.begin);
        self.text.drain(..begin);
        self.entries.iter_mut().for_each(|entry| entry.begin -= begin);
    }
}

/// Appendix A.
#[rustfmt::skip]
static STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""),
    ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

#[cfg(test)]
mod tests;
