import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LineDecoder } from './line-decoder.ts';

it('gives the same lines however the bytes are cut', () => {
  const line = fc
    .string({ unit: 'grapheme', minLength: 1 })
    .filter((text) => !text.includes('\n') && text.trim() !== '');
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (lines, sizes) => {
      const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
      const decoder = new LineDecoder();
      const got: string[] = [];
      for (let from = 0, i = 0; from < bytes.length; i += 1) {
        const size = sizes[i % sizes.length] ?? 1;
        got.push(...decoder.push(bytes.subarray(from, from + size)));
        from += size;
      }
      // Lone surrogates do not survive UTF-8, with or without this decoder.
      expect(got).toEqual(lines.map((text) => text.toWellFormed()));
    }),
  );
});

it('keeps back what has no newline yet, and skips empty lines', () => {
  const decoder = new LineDecoder();
  expect(decoder.push(Buffer.from('one\n\n\r\ntw'))).toEqual(['one']);
  expect(decoder.push(Buffer.from('o\nthree'))).toEqual(['two']);
});

it('gives up on a line that does not end', () => {
  const decoder = new LineDecoder(10);
  decoder.push(Buffer.from('12345'));
  expect(() => decoder.push(Buffer.from('678901'))).toThrow('longer than 10 bytes');
});
