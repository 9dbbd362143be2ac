// tus-js-client against a server: uploads a file in parts, breaks off in the middle, finds its upload again.
// What it has found is the last line of its output.
import { createHash, randomBytes } from "node:crypto";
import * as tus from "tus-js-client";

const [, , endpoint, protocol] = process.argv;
const data = randomBytes(3 * 1024 * 1024 + 17);
const found = { sha256: createHash("sha256").update(data).digest("hex"), parts: 0 };

const options = {
  endpoint,
  protocol,
  chunkSize: 512 * 1024,
  retryDelays: [0, 100, 500],
  metadata: { filename: "data.bin", filetype: "application/x-test" },
  onChunkComplete: () => (found.parts += 1),
  onAfterResponse: (_, response) => {
    if (response.getBody()?.startsWith("{")) found.response = JSON.parse(response.getBody());
  },
};

function upload(more) {
  return new Promise((resolve, reject) => {
    const one = new tus.Upload(data, {
      ...options,
      ...more,
      onError: reject,
      onSuccess: () => resolve(one.url),
      onProgress: (sent) => {
        if (more.stopAt && sent >= more.stopAt) {
          one.abort().then(() => resolve(one.url), reject);
        }
      },
    });
    one.start();
  });
}

const url = await upload({ stopAt: 1024 * 1024 });
found.broken = url !== null;
await upload({ uploadUrl: url });
found.url = url;
if (protocol === "tus-v1") {
  const other = new tus.Upload(data.subarray(0, 10), { ...options, chunkSize: 5, uploadLengthDeferred: false });
  await new Promise((resolve, reject) => {
    other.options.onSuccess = resolve;
    other.options.onError = reject;
    other.start();
  });
  const doomed = await upload({ stopAt: 512 * 1024 });
  await tus.Upload.terminate(doomed, options);
  found.terminated = (await fetch(doomed, { method: "HEAD", headers: { "Tus-Resumable": "1.0.0" } })).status;
}
if (protocol === "tus-v1") {
  found.joined = await upload({ parallelUploads: 3, chunkSize: 300 * 1024 });
}
console.log(JSON.stringify(found));
