//! The Huffman code of header fields (RFC 7541 section 5.2 and appendix B). It is canonical: codes of
//! one length follow each other in the order of their symbols, and longer codes follow shorter ones,
//! so that lengths say it all.

use super::code::Fault;

/// All bytes, and the end of a string, which no string has in it.
const SYMBOLS: usize = 257;
const END: u16 = 256;
const LONGEST: usize = 30;
/// Codes up to this length are looked up at once: those of letters, digits and most signs.
const QUICK: usize = 8;

/// Bits of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Codes of one length.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    count: u32,
    /// Where their symbols begin.
    begin: usize,
}

struct Code {
    /// By the next bits: a symbol and the length of its code, which is 0 where that is longer.
    quick: [(u8, u8); 1 << QUICK],
    groups: [Group; LONGEST + 1],
    /// In the order of their codes.
    symbols: [u16; SYMBOLS],
}

static CODE: Code = Code::new();

impl Code {
    const fn new() -> Code {
        let mut code = Code {
            quick: [(0, 0); 1 << QUICK],
            groups: [Group { first: 0, count: 0, begin: 0 }; LONGEST + 1],
            symbols: [0; SYMBOLS],
        };
        let (mut next, mut nth, mut length) = (0, 0, 1);
        while length <= LONGEST {
            next <<= 1;
            code.groups[length] = Group { first: next, count: 0, begin: nth };
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if LENGTHS[symbol] as usize == length {
                    code.symbols[nth] = symbol as u16;
                    code.groups[length].count += 1;
                    if length <= QUICK {
                        code.look_up(next, length, symbol as u8);
                    }
                    (next, nth) = (next + 1, nth + 1);
                }
                symbol += 1;
            }
            length += 1;
        }
        code
    }

    /// Whatever follows a short code, it is that symbol's.
    const fn look_up(&mut self, code: u32, length: usize, symbol: u8) {
        let rest = QUICK - length;
        let begin = (code as usize) << rest;
        let mut at = begin;
        while at < begin + (1 << rest) {
            self.quick[at] = (symbol, length as u8);
            at += 1;
        }
    }

    /// The symbol at the front of 64 bits, and the length of its code.
    fn long(&self, bits: u64) -> (u16, u32) {
        for length in QUICK + 1..=LONGEST {
            let group = &self.groups[length];
            let nth = ((bits >> (64 - length)) as u32).wrapping_sub(group.first);
            if nth < group.count {
                return (self.symbols[group.begin + nth as usize], length as u32);
            }
        }
        (END, LONGEST as u32)
    }
}

/// Appends what a string stands for.
pub fn decode(string: &[u8], text: &mut Vec<u8>) -> Result<(), Fault> {
    text.reserve(string.len() * 8 / 5);
    let mut bytes = string.iter();
    // The next bits, at the front, and how many they are.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        while count <= 56
            && let Some(byte) = bytes.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (symbol, length) = match CODE.quick[(bits >> (64 - QUICK)) as usize] {
            (_, 0) => CODE.long(bits),
            (symbol, length) => (u16::from(symbol), u32::from(length)),
        };
        if length > count {
            break;
        }
        let Ok(byte) = u8::try_from(symbol) else {
            return Err(Fault::compression("a Huffman string has its end in its middle"));
        };
        text.push(byte);
        bits <<= length;
        count -= length;
    }
    // What is left is the beginning of the code for the end: less than a byte of ones.
    if count > 7 || bits.leading_ones() < count {
        return Err(Fault::compression("a Huffman string is not filled up with ones"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(hex: &str) -> Option<String> {
        let mut text = Vec::new();
        decode(&hex::decode(hex).expect("hex"), &mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// RFC 7541 appendices C.4 and C.6.
    #[test]
    fn strings_of_the_standard() {
        for (hex, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("a8eb10649cbf", "no-cache"),
            ("25a849e95ba97d7f", "custom-key"),
            ("25a849e95bb8e8b4bf", "custom-value"),
            ("6402", "302"),
            ("aec3771a4b", "private"),
            ("d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"),
            ("", ""),
        ] {
            assert_eq!(decoded(hex).as_deref(), Some(text));
        }
    }

    #[test]
    fn every_symbol_is_decoded() {
        for (nth, symbol) in CODE.symbols.iter().enumerate() {
            let length = usize::from(LENGTHS[usize::from(*symbol)]);
            let group = &CODE.groups[length];
            let code = u64::from(group.first) + (nth - group.begin) as u64;
            let bits = code << (64 - length) | u64::MAX >> length;
            let mut text = Vec::new();
            let outcome = decode(&bits.to_be_bytes()[..length.div_ceil(8)], &mut text);
            match u8::try_from(*symbol) {
                Ok(byte) => assert_eq!((outcome, text), (Ok(()), vec![byte])),
                Err(_) => assert!(outcome.is_err()),
            }
        }
    }

    #[test]
    fn padding_is_ones_and_less_than_a_byte() {
        // 'a' is 00011.
        assert_eq!(decoded("1f").as_deref(), Some("a"));
        for wrong in ["18", "1fff", "ff", "1e", "ffffffff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
