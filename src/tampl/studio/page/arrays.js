// Microstates on their way: base 64 and .npy to typed arrays and back.

const TYPES = {
  uint8: [Uint8Array, "|u1"],
  uint16: [Uint16Array, "<u2"],
  int64: [BigInt64Array, "<i8"],
  float32: [Float32Array, "<f4"],
  float64: [Float64Array, "<f8"],
};

export function decode({ shape, dtype, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return { shape, dtype, values: new TYPES[dtype][0](bytes.buffer) };
}

export function encode({ shape, dtype, values }) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { shape, dtype, data: btoa(text) };
}

export function copy(array) {
  return { ...array, values: array.values.slice() };
}

// The k-th of several arrays that are stacked along the first axis.
export function row(stack, k) {
  const shape = stack.shape.slice(1);
  const size = shape.reduce((a, b) => a * b, 1);
  return { shape, dtype: stack.dtype, values: stack.values.subarray(k * size, (k + 1) * size) };
}

export function toNpy(array) {
  const shape = array.shape.join(", ") + (array.shape.length === 1 ? "," : "");
  const dict = `{'descr': '${TYPES[array.dtype][1]}', 'fortran_order': False, 'shape': (${shape}), }`;
  const padded = dict.padEnd(Math.ceil((dict.length + 11) / 64) * 64 - 11) + "\n";
  const head = new Uint8Array(10 + padded.length);
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8]);
  head.set(new TextEncoder().encode(padded), 10);
  return new Blob([head, array.values], { type: "application/octet-stream" });
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
