/** What is written to, as the entry of the program knows it. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Is `out` a terminal? */
  readonly isTerminal: boolean;
}

export type Paint = (text: string) => string;

/** ECMA-48 colours, or none. */
export interface Palette {
  readonly bold: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly cyan: Paint;
  readonly dim: Paint;
}

/** Select Graphic Rendition: the code that begins and the one that ends. */
function sgr(begin: number, end: number): Paint {
  return (text) => `\u001b[${begin}m${text}\u001b[${end}m`;
}

export function paletteFor(coloured: boolean): Palette {
  if (!coloured) {
    const plain: Paint = (text) => text;
    return { bold: plain, red: plain, green: plain, cyan: plain, dim: plain };
  }
  return { bold: sgr(1, 22), red: sgr(31, 39), green: sgr(32, 39), cyan: sgr(36, 39), dim: sgr(2, 22) };
}

/**
 * One line of foreign text, harmless for a terminal: what others wrote into a cluster must not move its cursor, change its
 * title or hide what stands there (C0, C1, line and paragraph separators, bidirectional overrides).
 */
export function harmless(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
