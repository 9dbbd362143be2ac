//! A reader of HTTP/1.1 responses, stricter than clients are.
//!
//! Shares no code with the server, so that the two cannot be wrong together: it splits, compares and
//! counts, slowly and plainly.

/// What a response is read for: the request it belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The method is HEAD.
    pub head_only: bool,
    /// The client speaks HTTP/1.0.
    pub http10: bool,
}

/// A final response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedResponse {
    /// The status code.
    pub status: u16,
    /// Names and values.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body without its coding.
    pub body: Vec<u8>,
    /// The connection ends with this response.
    pub closes: bool,
    /// Whether all of it is there.
    pub complete: bool,
}

/// Reads all responses in `bytes`, in the order of the requests `asked`.
///
/// One more may follow, the response to a request that was refused; then it closes the connection.
///
/// # Errors
/// The rule that the bytes break.
pub fn read(bytes: &[u8], asked: &[Asked]) -> Result<Vec<ParsedResponse>, String> {
    let (mut responses, mut rest) = (Vec::<ParsedResponse>::new(), bytes);
    while !rest.is_empty() {
        if responses.last().is_some_and(|last| last.closes) {
            return Err(format!("bytes behind the last response: {rest:?}"));
        }
        let refused = asked.get(responses.len()).is_none();
        if responses.len() > asked.len() {
            return Err("more responses than requests".into());
        }
        let asked = asked.get(responses.len()).copied().unwrap_or_default();
        let Some((response, after)) = read_one(rest, asked)? else {
            break;
        };
        rest = after;
        if let Some(response) = response {
            if refused && response.complete && !response.closes {
                return Err("the connection goes on behind a refusal".into());
            }
            responses.push(response);
        }
    }
    Ok(responses)
}

type Rest<'b> = &'b [u8];

/// One response and what follows; no response for an informational one, nothing at all for half a head.
fn read_one(
    bytes: Rest<'_>,
    asked: Asked,
) -> Result<Option<(Option<ParsedResponse>, Rest<'_>)>, String> {
    let Some((head, after)) = split_at(bytes, b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let status = read_status(lines.next().unwrap_or_default())?;
    let fields = lines.map(read_field).collect::<Result<Vec<_>, _>>()?;
    if (100..200).contains(&status) {
        if asked.http10 {
            return Err("an informational response to HTTP/1.0".into());
        }
        return Ok(Some((None, after)));
    }
    let closes = value_of(&fields, "connection")? == Some(b"close");
    let response = |body: &[u8], complete| {
        Some(ParsedResponse {
            status,
            fields: fields.clone(),
            body: body.to_vec(),
            closes,
            complete,
        })
    };
    let coding = value_of(&fields, "transfer-encoding")?;
    let length = value_of(&fields, "content-length")?;
    if coding.is_some() && (length.is_some() || asked.http10 || coding != Some(b"chunked")) {
        return Err("a transfer coding that is not allowed here".into());
    }
    if status == 204 && (length.is_some() || coding.is_some()) {
        return Err("a 204 with a length".into());
    }
    if asked.head_only || status == 204 || status == 304 {
        return Ok(Some((response(b"", true), after)));
    }
    if coding.is_some() {
        return read_chunks(after)
            .map(|(body, complete, rest)| Some((response(&body, complete), rest)));
    }
    let Some(length) = length else {
        if !closes {
            return Err("a body without an end".into());
        }
        return Ok(Some((response(after, true), &[])));
    };
    let length = std::str::from_utf8(length)
        .ok()
        .and_then(|text| text.parse::<usize>().ok());
    let length = length.ok_or("a length that is no number")?;
    let (body, rest) = after.split_at(length.min(after.len()));
    Ok(Some((response(body, body.len() == length), rest)))
}

fn read_status(line: &[u8]) -> Result<u16, String> {
    let text = std::str::from_utf8(line).map_err(|_| "a status line that is no text")?;
    let rest = text.strip_prefix("HTTP/1.1 ");
    let (code, _) = rest
        .and_then(|rest| rest.split_once(' '))
        .ok_or_else(|| format!("not a status line: {text:?}"))?;
    let code = code.parse().map_err(|_| "a status that is no number")?;
    if (100..600).contains(&code) {
        Ok(code)
    } else {
        Err(format!("status {code}"))
    }
}

fn read_field(line: &[u8]) -> Result<(String, Vec<u8>), String> {
    let (name, value) = split_at(line, b": ").ok_or_else(|| format!("not a field: {line:?}"))?;
    let name_ok = !name.is_empty()
        && name
            .iter()
            .all(|b| b.is_ascii_graphic() && !b"\":;,()<>@[]{}/\\?=".contains(b));
    let value_ok = value.iter().all(|&b| b == b'\t' || b >= b' ' && b != 0x7f);
    if !name_ok || !value_ok || name.iter().any(u8::is_ascii_uppercase) {
        return Err(format!("not a field: {line:?}"));
    }
    Ok((String::from_utf8_lossy(name).into_owned(), value.to_vec()))
}

fn value_of<'f>(fields: &'f [(String, Vec<u8>)], name: &str) -> Result<Option<&'f [u8]>, String> {
    let mut values = fields.iter().filter(|(n, _)| n == name);
    let value = values.next().map(|(_, value)| value.as_slice());
    if values.next().is_some() {
        return Err(format!("{name} is repeated"));
    }
    Ok(value)
}

type Chunks<'b> = (Vec<u8>, bool, Rest<'b>);

fn read_chunks(mut rest: Rest<'_>) -> Result<Chunks<'_>, String> {
    let mut body = Vec::new();
    loop {
        let Some((size, after)) = split_at(rest, b"\r\n") else {
            return Ok((body, false, &[]));
        };
        let digits = std::str::from_utf8(size).unwrap_or("?");
        let size =
            usize::from_str_radix(digits, 16).map_err(|_| format!("chunk size {digits:?}"))?;
        if size == 0 {
            return Ok(
                read_trailers(after).map_or((body.clone(), false, &[]), |rest| (body, true, rest))
            );
        }
        if after.len() < size + 2 {
            body.extend_from_slice(after.get(..size).unwrap_or(after));
            return Ok((body, false, &[]));
        }
        let (data, end) = after.split_at(size);
        body.extend_from_slice(data);
        rest = end
            .strip_prefix(b"\r\n")
            .ok_or("a chunk that does not end")?;
    }
}

fn read_trailers(mut rest: Rest<'_>) -> Option<Rest<'_>> {
    loop {
        let (line, after) = split_at(rest, b"\r\n")?;
        if line.is_empty() {
            return Some(after);
        }
        rest = after;
    }
}

fn split_at<'b>(bytes: &'b [u8], separator: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes
        .windows(separator.len())
        .position(|window| window == separator)?;
    Some((bytes.get(..at)?, bytes.get(at + separator.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Asked = Asked {
        head_only: false,
        http10: false,
    };

    #[test]
    fn reads_each_framing() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\n\
            HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab\
            HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n\
            HTTP/1.1 204 No Content\r\n\r\n\
            HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nrest";
        let responses = read(bytes, &[GET; 4]).expect("valid");
        let bodies: Vec<_> = responses.iter().map(|a| a.body.as_slice()).collect();
        assert_eq!(bodies, [&b"ab"[..], b"abc", b"", b"rest"]);
        assert!(responses.iter().all(|response| response.complete));
    }

    #[test]
    fn objects_to_what_servers_must_not_send() {
        for bad in [
            &b"HTTP/1.1 200 OK\r\n\r\nendless"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 999 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\nmore",
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        ] {
            assert!(read(bad, &[GET]).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn tells_halves_from_wholes() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab";
        let responses = read(bytes, &[GET]).expect("valid so far");
        assert!(responses.iter().all(|response| !response.complete));
    }
}
