import { harmless } from '../drift/terminal.ts';
import type { Palette } from '../drift/terminal.ts';
import type { DoctorReport, Finding } from './finding.ts';

/** A line per finding, and what to do below it. */
export function doctorText({ findings, summary }: DoctorReport, palette: Palette): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map((finding) => {
    const what = [finding.subject, finding.message].filter((part) => part !== '').join(': ');
    const advice = finding.advice === '' ? '' : `      ${' '.repeat(width)}→ ${harmless(finding.advice)}\n`;
    return `${paint(finding, palette)}  ${finding.check.padEnd(width)}  ${harmless(what)}\n${advice}`;
  });
  return `${lines.join('')}\n${summaryLine(summary)}\n`;
}

function paint({ level }: Finding, { green, red, cyan, dim }: Palette): string {
  const text = level.padEnd(4);
  return { ok: green, warn: cyan, fail: red, skip: dim }[level](text);
}

function summaryLine({ ok, warn, fail, skip }: DoctorReport['summary']): string {
  const parts = [`${ok} ok`, `${warn} to be looked at`, `${fail} wrong`];
  if (skip > 0) parts.push(`${skip} could not be checked`);
  return parts.join(', ');
}
