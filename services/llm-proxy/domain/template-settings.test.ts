import { expect } from 'chai';
import { isOneOff, settingsKey, templateSettings } from './template-settings.ts';

describe('settings of the chat template', () => {
  it('are what a template is given, and nothing of the sampling', () => {
    const fields = {
      temperature: 1,
      tool_choice: 'auto',
      reasoning_effort: 'low',
      chat_template_kwargs: { b: 1, a: 2 },
    };
    expect(templateSettings(fields)).to.deep.equal({
      reasoning_effort: 'low',
      chat_template_kwargs: { b: 1, a: 2 },
    });
    expect(templateSettings({ tool_choice: 'none', reasoning_effort: null })).to.deep.equal({
      tool_choice: 'none',
    });
  });

  it('have one key for equal settings', () => {
    const key = settingsKey({ chat_template_kwargs: { a: 2, b: 1 }, seed: 3 });
    expect(key).to.equal(settingsKey({ chat_template_kwargs: { b: 1, a: 2 } }));
    expect(key).not.to.equal(settingsKey({}));
  });

  it('have a short key, however much a harness says', () => {
    const keyOf = (text: string): string => settingsKey({ chat_template_kwargs: { text } });
    const long = 'x'.repeat(100_000);
    expect(keyOf(long)).to.have.length.below(200);
    expect(keyOf(long))
      .to.equal(keyOf(long))
      .and.not.equal(keyOf(`${long}y`));
  });

  it('are for one request alone where it changes the template itself', () => {
    expect(isOneOff({ temperature: 1 })).to.equal(false);
    expect(isOneOff({ continue_final_message: true })).to.equal(true);
  });
});
