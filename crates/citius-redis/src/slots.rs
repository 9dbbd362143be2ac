//! Hash slots and redirections of a cluster (`redis/docs/reference/cluster-spec`).

/// Slots of a cluster.
pub const SLOTS: u16 = 16384;

/// The slot of a key: of what stands between its first `{` and the next `}`, if there is something, else of all of it.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % SLOTS
}

fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else {
        return key;
    };
    let behind = key.get(open + 1..).unwrap_or_default();
    match behind.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(len) => behind.get(..len).unwrap_or(key),
    }
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, &byte| {
        let index = usize::from((crc >> 8) ^ u16::from(byte)) & 0xff;
        (crc << 8) ^ CRC[index]
    })
}

const CRC: [u16; 256] = {
    let mut table = [0; 256];
    let mut index: u16 = 0;
    while index < 256 {
        let mut crc = index << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[index as usize] = crc;
        index += 1;
    }
    table
};

/// Where a node of a cluster says that a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect<'a> {
    /// The slot has another owner: `host:port`.
    Moved(u16, &'a str),
    /// The slot is on its way to another node, which has this key and takes it after `ASKING`.
    Ask(u16, &'a str),
    /// No node can say yet: the command is to be sent again in a moment.
    Again,
}

impl<'a> Redirect<'a> {
    /// The slot that it is about.
    pub fn slot(self) -> Option<u16> {
        match self {
            Self::Moved(slot, _) | Self::Ask(slot, _) => Some(slot),
            Self::Again => None,
        }
    }

    /// What an error asks for, if it is a redirection.
    pub fn of(error: &'a [u8]) -> Option<Self> {
        let mut words = core::str::from_utf8(error).ok()?.split(' ');
        let code = words.next()?;
        if let "TRYAGAIN" | "CLUSTERDOWN" = code {
            return Some(Self::Again);
        }
        let make = match code {
            "MOVED" => Self::Moved,
            "ASK" => Self::Ask,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|&slot| slot < SLOTS)?;
        Some(make(slot, words.next()?))
    }
}
