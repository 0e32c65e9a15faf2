import { describe, expect, it } from 'vitest';
import { isKubeError } from './errors.ts';
import type { KubeError } from './errors.ts';
import { errorFromResponse, errorFromStatus, parseRetryAfter } from './status.ts';

const ASKED = { method: 'GET', path: '/api/v1/pods' };

function status(code: number, fields: Record<string, unknown> = {}): KubeError {
  return errorFromResponse(ASKED, { status: code, body: JSON.stringify({ kind: 'Status', code, ...fields }) });
}

describe('errors from answers', () => {
  it.each([
    [400, {}, 'Invalid', 'never'],
    [401, {}, 'Unauthorized', 'reauthenticate'],
    [403, {}, 'Forbidden', 'never'],
    [404, {}, 'NotFound', 'refresh'],
    [405, {}, 'Invalid', 'never'],
    [408, {}, 'TimedOut', 'retry'],
    [409, { reason: 'Conflict' }, 'Conflict', 'refresh'],
    [409, { reason: 'AlreadyExists' }, 'AlreadyExists', 'refresh'],
    [410, { reason: 'Expired' }, 'Gone', 'refresh'],
    [422, {}, 'Invalid', 'never'],
    [429, {}, 'TooManyRequests', 'retry'],
    [500, {}, 'Server', 'retry'],
    [503, {}, 'Server', 'retry'],
    [504, {}, 'TimedOut', 'retry'],
  ])('%i %o is %s: %s', (code, fields, name, handling) => {
    expect(status(code, fields)).toMatchObject({ code: name, handling, status: code });
  });

  it('tells a missing object from a resource that is not served', () => {
    expect(status(404, { details: { name: 'x', kind: 'pods' } })).toMatchObject({ notServed: false });
    expect(status(404, { details: {} })).toMatchObject({ notServed: true });
    expect(errorFromResponse(ASKED, { status: 404, body: '404 page not found\n' })).toMatchObject({ notServed: true });
  });

  it("carries the server's words, bounded", () => {
    expect(status(403, { reason: 'Forbidden', message: 'no' }).message).toBe('GET /api/v1/pods: no (Forbidden 403)');
    expect(status(500, { message: 'x'.repeat(10_000) }).message.length).toBeLessThan(1_100);
    const page = errorFromResponse(ASKED, { status: 502, body: '<html><h1>Bad   Gateway</h1></html>' });
    expect(page.message).toBe('GET /api/v1/pods: Bad Gateway (HTTP 502)');
  });

  it('says nothing of a Secret that the server could not read', () => {
    const asked = { method: 'POST', path: '/api/v1/namespaces/a/secrets' };
    const body = JSON.stringify({ kind: 'Status', message: 'bad body ...|"password":"hunter2"|...' });
    expect(errorFromResponse(asked, { status: 400, body }).message).not.toContain('hunter2');
  });

  it('knows how long to wait, by the header before the body', () => {
    const body = JSON.stringify({ kind: 'Status', details: { retryAfterSeconds: 7 } });
    expect(errorFromResponse(ASKED, { status: 429, body }).retryAfterMs).toBe(7_000);
    expect(errorFromResponse(ASKED, { status: 429, body, retryAfter: '2' }).retryAfterMs).toBe(2_000);
  });

  it('reads the Status of an ERROR event', () => {
    expect(errorFromStatus(ASKED, { code: 410, reason: 'Expired' })).toMatchObject({ code: 'Gone' });
    const ahead = errorFromStatus(ASKED, {
      code: 504,
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }, {}] },
    });
    expect(ahead).toMatchObject({ code: 'TimedOut', causes: ['ResourceVersionTooLarge'] });
    expect(errorFromStatus(ASKED, {})).toMatchObject({ code: 'Server' });
  });
});

it('reads Retry-After as seconds or as a date, and believes nothing absurd', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  expect(parseRetryAfter('Thu, 01 Jan 2026 00:00:05 GMT', now)).toBe(5_000);
  expect(parseRetryAfter('Thu, 01 Jan 2025 00:00:05 GMT', now)).toBe(0);
  expect(parseRetryAfter('99999999')).toBe(300_000);
  expect([parseRetryAfter('soon'), parseRetryAfter(''), parseRetryAfter(undefined)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

it('tells KubeErrors by code', () => {
  const error = status(404);
  expect([isKubeError(error), isKubeError(error, 'NotFound'), isKubeError(error, 'Conflict')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(isKubeError(new Error('x'))).toBe(false);
});
