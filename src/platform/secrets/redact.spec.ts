import { redact } from './redact.js';

describe('text that is logged', () => {
  it.each([
    ['got Bearer abc.def-ghi', 'got [redacted]'],
    ['got eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.x back', 'got [redacted] back'],
    ['rlt_0123456789, rlt_9876543210', '[redacted], [redacted]'],
    ['postgres://rialto:hunter2@db/x', 'postgres://rialto:[redacted]@db/x'],
    ['nothing to hide', 'nothing to hide'],
  ])('%s becomes %s', (text, clean) => {
    expect(redact(text)).toBe(clean);
    expect(redact({ text })).toEqual({ text: clean });
  });
});
