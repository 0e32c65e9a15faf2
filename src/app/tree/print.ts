import { harmless } from '../drift/terminal.ts';
import type { Palette } from '../drift/terminal.ts';
import type { ReleaseNode } from './health.ts';
import type { FleetTree } from './tree.ts';

/** As `tree` draws it; '' when there is nothing. */
export function treeText(tree: FleetTree, palette: Palette): string {
  return tree.branches
    .map(({ name, phase, problem, releases }) => {
      const head = [palette.bold(harmless(name)), palette.dim(harmless(phase)), palette.red(harmless(problem))];
      const cells = releases.map((release) => cellsOf(release, tree.by));
      const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...cells.map((row) => row[column]?.length ?? 0)));
      const rows = cells.map((row, index) => {
        const drawn = index === cells.length - 1 ? '└─ ' : '├─ ';
        const text = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
        const release = releases[index];
        const reason = release === undefined || release.reason === '' ? '' : `  ${harmless(release.reason)}`;
        return drawn + (release?.healthy === false ? palette.red(text.trimEnd() + reason) : (text + reason).trimEnd());
      });
      return [
        head
          .filter((part) => part !== '')
          .join('  ')
          .trimEnd(),
        ...rows,
      ]
        .map((line) => `${line}\n`)
        .join('');
    })
    .join('');
}

function cellsOf(release: ReleaseNode, by: FleetTree['by']): string[] {
  const where = by === 'cluster' ? (release.helmChartProxy ?? release.helmReleaseProxy) : release.cluster;
  const name = release.release === '' ? '(no name yet)' : release.release;
  return [
    where,
    `${release.namespace}/${name}`,
    release.chart,
    `${release.status}${release.revision === undefined ? '' : ` ${release.revision}`}`,
  ].map(harmless);
}

export function treeSummary({ summary: { clusters, releases, unhealthyReleases, problems } }: FleetTree): string {
  const parts = [`${count(releases, 'release')} on ${count(clusters, 'cluster')}`];
  if (unhealthyReleases > 0) parts.push(`${unhealthyReleases} not healthy`);
  if (problems > 0) parts.push(count(problems, 'other problem'));
  return unhealthyReleases + problems === 0 ? `${parts.join(', ')}, all healthy` : parts.join(', ');
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
