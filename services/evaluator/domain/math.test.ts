import { expect } from 'chai';
import { answerIn, isRight } from './math-answer.ts';
import { isAnswer, sameAnswer } from './math-value.ts';

/** Each written in several ways. */
const SAME: readonly (readonly string[])[] = [
  [
    '1/2',
    '0.5',
    '.5',
    '50%',
    '50\\%',
    '\\frac{1}{2}',
    '\\dfrac12',
    '$\\tfrac{1}{2}$',
    '+0.50',
    '5e-1',
    '2/4',
  ],
  ['-1/2', '-\\frac{1}{2}', '\\frac{-1}{2}', '−0.5', '-(1/2)', '\\left(-\\frac12\\right)'],
  ['1000', '1,000', '1{,}000', '1\\,000', '1e3', '1 \\times 10^3', '1.0 \\cdot 10^{3}', '$1,000$'],
  ['3/2', '1.5', '1\\frac{1}{2}', '1 1/2', '150%', '1 \\frac12'],
  ['-3/2', '-1\\frac{1}{2}', '-1.5'],
  ['120', '5!=120', '2x = 120'],
  [
    '3',
    'x=3',
    'x = 3',
    '3.',
    '3.0',
    '**3**',
    '`3`',
    '"3"',
    '$x = 3$',
    '2x - 3 = 3',
    '(3)',
    '\\{3\\}',
    '\\boxed{3}',
  ],
  ['45', '45°', '45^\\circ', '45^{\\circ}', '45 degrees', '45\\degree', '45\\text{ degrees}'],
  ['5 cm', '5', '5cm', '5\\text{ cm}', '5\\,\\mathrm{cm}', '5 centimeters', '5.0 cm.'],
  ['12 m^2', '12 square meters', '12 \\text{ m}^2', '12 sq m', '12 m²'],
  ['42 apples', '42', '42 \\text{ apples}'],
  ['$5', '5 dollars', '\\$5.00', '5'],
  [
    '\\{1,2,3\\}',
    '{3, 2, 1}',
    '3, 1, 2',
    '\\left\\{ 1, 2, 3 \\right\\}',
    '1, 2 and 3',
    'x = 1, x = 2, x = 3',
  ],
  ['\\{1/2, 2\\}', '0.5, 2', '\\{2, \\frac{1}{2}\\}'],
  ['(1, 2)', '\\left(1, 2\\right)', '(1.0,2)', '$(1,2)$'],
  ['[0, 1)', '\\left[0, 1\\right)', '[0,1)', '[0, 1.0)'],
  ['(-\\infty, 3]', '(-∞,3]', '\\left(-\\infty, 3\\right]'],
  ['(0, \\infty)', '(0,+\\infty)', '(0, +∞)'],
  ['(5,120)', '(5, 120)', '\\left(5,120\\right)'],
  ['(3, 4)', '(x, y) = (3, 4)', '(x,y)=(3,4)'],
  ['[0,1]', 'x \\in [0, 1]', 'x∈[0,1]', 'x = [0, 1]'],
  ['5, 6', 'x = 5 or x = 6', 'x=6, x=5'],
  ['\\sqrt{12}', '√12', '√(12)', '√{12}'],
  ['5xy', '5 xy', '5 x y'],
  ['5!', '5 !'],
  ['42', '42 of them'],
  ['Đà Nẵng', 'Đà Nẵng'.normalize('NFD')],
  ['x = 1, y = 2', 'y=2, x=1'],
  ['\\pi', 'π', '$\\pi$'],
  ['\\frac{\\pi}{2}', '\\pi/2', 'π/2', '\\dfrac{\\pi}{2}'],
  ['2\\sqrt{3}', '2 \\sqrt3', '2\\cdot\\sqrt{3}', '$2\\sqrt{3}$'],
  ['x^2+1', 'x^{2} + 1', 'x^2 + 1', 'x² + 1'],
  ['2x', '2 \\cdot x', '2*x'],
  ['x^{n+1}', 'x^(n+1)'],
  ['Yes', 'yes', 'yes.', '\\text{Yes}', '**Yes**'],
  ['(B)', 'B', 'b', '\\text{(B)}', '\\textbf{(B)}'],
  ['(\\{1, 2\\}, 3)', '(\\{2,1\\}, 3.0)'],
  ['0.1', '1/10', '10%'],
  ['\\frac{1}{3}', '1/3', '(1)/(3)'],
];

const OTHER: readonly (readonly [string, string])[] = [
  ...([
    ['\\pi', '3.14'],
    ['1/3', '0.333'],
    ['(1,2)', '(2,1)'],
    ['[0,1)', '(0,1)'],
    ['x=3', 'y=3'],
  ] as const),
  ...([
    ['5 cm', '5 m'],
    ['5 m', '5 m^2'],
    ['5 million', '5'],
    ['2 x', '2'],
    ['3x', '3'],
    ['1/0', '0'],
  ] as const),
  ...([
    ['{3,12}', '12'],
    ['1, 2', '1'],
    ['-3', '3'],
    ['50', '50%'],
    ['', ''],
    ['', '0'],
    ['$$', '$$'],
  ] as const),
  ...([
    ['x=1,y=2', 'x=2,y=1'],
    ['2*3', '23'],
    ['not 3', '3'],
    ['3 or 4', '3'],
    ['1,0000', '10000'],
  ] as const),
  ...([
    ['x^{10}', 'x^1 0 + 1'],
    ['2^{3}', '23'],
    ['(1,234)', '1234'],
    ['5!', '5'],
    ['5 xy', '5'],
    ['x = 5 or x = 6', '6'],
    ['(x, y) = (3, 4)', '(a, b) = (3, 4)'],
    ['yes', 'no'],
    ['5 and a half', '5'],
    ['x \\neq 3', '3'],
    ['x != 3', '3'],
    ['x =/= 3', '3'],
    ['x \\not= 3', '3'],
    ['x \\text{ is not } = 3', '3'],
  ] as const),
];

describe('answers', () => {
  for (const ways of SAME) {
    it(`are the same one: ${ways.join('  ')}`, () => {
      for (const one of ways)
        for (const other of ways) expect(sameAnswer(one, other), `${one} ~ ${other}`).to.equal(true);
    });
  }

  it('are others', () => {
    for (const [one, other] of OTHER) {
      expect(sameAnswer(one, other), `${one} ~ ${other}`).to.equal(false);
      expect(sameAnswer(other, one), `${other} ~ ${one}`).to.equal(false);
    }
  });

  it('of whatever signs are compared, and at once', () => {
    const odd = [
      '\\',
      '{',
      '}',
      '\\frac',
      '\\frac{',
      '\\sqrt[',
      '^',
      '^{',
      '((((',
      '))',
      '[1',
      '{1,',
      ',',
      ',,',
      '=',
      '%',
      '/',
    ];
    const long = [
      '(',
      '\\frac{',
      '1,',
      '9',
      ' ',
      'a ',
      'x=',
      '\\left',
      '{',
      '}',
      '-',
      '.',
      '9 cm',
      '1/',
      '&',
      '√',
      'x∈',
      '(x,',
    ].map((one) => one.repeat(1_000).slice(0, 1_000));
    const { user } = process.cpuUsage();
    for (const text of [...odd, ...long, `1e${'9'.repeat(3)}`, `9e-999/7e999`]) {
      expect(isAnswer(text) && sameAnswer(text, '17'), text).to.equal(false);
      expect(sameAnswer(text, text), text).to.equal(isAnswer(text));
    }
    expect((process.cpuUsage().user - user) / 1000).to.be.lessThan(2_000);
    expect([isAnswer(' $ '), isAnswer('1'.repeat(1_001)), isAnswer('1'.repeat(1_000))]).to.deep.equal([
      ...[false, false, true],
    ]);
  });
});

describe('the answer of a reply', () => {
  for (const [reply, form, text] of [
    ['It is 4.\nAnswer: 5\nSo 6.', 'answer', '5'],
    ['Answer: 4\nNo.\n**Final Answer:** $\\frac{1}{2}$', 'answer', '$\\frac{1}{2}$'],
    ['**Answer**: \\boxed{7} is it', 'answer', '7'],
    ['The answer is: 12', 'answer', '12'],
    ['answer:\n\n$$\n\\frac12\n$$', 'answer', '\\frac12'],
    ['Answer:\n', 'none', ''],
    ['My answer is 12', 'number', '12'],
    ['\\boxed{3}, no: \\boxed{12}', 'boxed', '12'],
    ['\\boxed{\\frac{1}{2}} of 9', 'boxed', '\\frac{1}{2}'],
    ['\\boxed{3} and \\boxed{4', 'boxed', '3'],
    ['\\boxed{\\{1, 2\\}}', 'boxed', '\\{1, 2\\}'],
    ['From 3 to 1,234.5, and then 3/4.', 'number', '3/4'],
    ['It costs -1,000.', 'number', '-1,000'],
    ['It is −5.', 'number', '−5'],
    ['Pages 3-5', 'number', '5'],
    ['It is 1.5e3 or so', 'number', '1.5e3'],
    ['That makes 6 \\times 10^{3}.', 'number', '6 \\times 10^{3}'],
    ['So it is $-\\frac{3}{4}$.', 'number', '-\\frac{3}{4}'],
    ['We get 3 1/2.', 'number', '3 1/2'],
    ['nothing', 'none', ''],
    ['answers: 3; 50% of it', 'number', '50%'],
  ] as const) {
    it(`${JSON.stringify(reply)} is ${text} (${form})`, () => {
      expect(answerIn(reply)).to.deep.equal({ form, text });
    });
  }

  it('is right where it is one of those that are', () => {
    expect(isRight(answerIn('Answer: 0.5'), ['2', '1/2'])).to.equal(true);
    expect(isRight(answerIn('Answer: 0.4'), ['2', '1/2'])).to.equal(false);
    expect(isRight(answerIn('who knows'), ['2'])).to.equal(false);
    expect(isRight(answerIn('Answer: **42!**'), ['42'])).to.equal(true);
    expect(isRight(answerIn('Answer: 5!'), ['5!'])).to.equal(true);
    expect(isRight(answerIn('Answer: 5'), ['5!'])).to.equal(false);
  });

  it('is found at once in a long one', () => {
    const { user } = process.cpuUsage();
    for (const part of [
      'answer ',
      'answer: ',
      '\\boxed{',
      '1,',
      '1,111',
      '-',
      '{',
      '\\boxed{1',
      '9',
      '1/',
      '.',
      '1 ',
      '1^',
      '\\frac{1}{',
      '1 \\times 10',
    ]) {
      answerIn(part.repeat(300_000));
    }
    expect((process.cpuUsage().user - user) / 1000).to.be.lessThan(3_000);
  });
});
