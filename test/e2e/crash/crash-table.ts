import { describe, it } from "vitest";
import { startCrashStory, type CrashStory } from "./crash-story.ts";
import type { SeenAnswer, Surface } from "./crash-platforms.ts";
import type { Life, Lives } from "./life.ts";
import type { DieAt, Step } from "./steps.ts";

/** The places where a story is told, by name, with what makes them. */
export type Surfaces = Readonly<Record<string, () => Surface | Promise<Surface>>>;

/** What a person does while the bot dies at each of its steps in turn. */
export interface Scene {
  /** The words that follow "a bot that dies". */
  readonly over: string;
  readonly surfaces: Surfaces;
  /** Prepares the story before it begins, such as what the model answers. */
  prepare?(story: CrashStory): void;
  /** Runs up to the moment from which the bot may die. Resolves to what the person sees then. */
  begin(story: CrashStory, life: Life): Promise<readonly SeenAnswer[]>;
  /** Does what the person does. */
  act(story: CrashStory): Promise<void>;
  /** The step that ends it. */
  readonly last: Step;
  /** The result, said as "it …", and what must be seen in the next life. */
  readonly comesOfIt: string;
  afterwards(story: CrashStory, before: readonly SeenAnswer[], how: Death): Promise<void>;
  /** The bot dies only at steps of these operations. By default it dies at all. */
  readonly only?: readonly string[];
}

/** How the first life has ended. */
export interface Death {
  readonly surface: string;
  /** Whether a step was done before it. */
  readonly isDone: (step: Step) => boolean;
}

/** Other operations belong to the store, and come again in each telling. */
const mayComeOrNot = /^[A-Z]+ \//;

/**
 * Tells a scene once without a death, on each surface, to learn its steps. Then it declares a test for the
 * death before the first of them and one for the death after each. A request may be made by chance of time
 * and not come again. The bot then dies after the last step.
 */
export async function crashTable(scene: Scene): Promise<void> {
  for (const [surface, createSurface] of Object.entries(scene.surfaces)) {
    const all = await learnSteps(scene, createSurface);
    const steps = all.filter((step) => scene.only === undefined || scene.only.includes(operationOf(step)));
    const deaths = [toDeath(steps[0]!, "before"), ...steps.map((step) => toDeath(step, "after"))];
    describe(`a bot that dies ${scene.over}, on ${surface}`, () => {
      for (const dieAt of deaths)
        it.concurrent(`${dieAt}: ${scene.comesOfIt}`, () => tell(scene, { surface, createSurface, dieAt }));
    });
  }
}

/** Runs a test in a new story. By default `lives` are in this process. */
export async function inStory(
  createSurface: () => Surface | Promise<Surface>,
  told: (story: CrashStory) => Promise<void>,
  lives?: Lives,
): Promise<void> {
  const story = await startCrashStory(await createSurface(), lives);
  try {
    await told(story);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${await story.explain()}`, { cause: error });
  } finally {
    await story.close();
  }
}

async function learnSteps(scene: Scene, createSurface: () => Surface | Promise<Surface>): Promise<Step[]> {
  let steps: Step[] = [];
  await inStory(createSurface, async (story) => {
    scene.prepare?.(story);
    const life = await story.start();
    await scene.begin(story, life);
    const from = life.steps.length;
    await scene.act(story);
    await life.done(scene.last);
    steps = life.steps.slice(from);
  });
  return steps;
}

async function tell(
  scene: Scene,
  {
    surface,
    createSurface,
    dieAt,
  }: { readonly dieAt: DieAt; readonly surface: string } & {
    readonly createSurface: () => Surface | Promise<Surface>;
  },
): Promise<void> {
  await inStory(createSurface, async (story) => {
    scene.prepare?.(story);
    const life = await story.start(dieAt);
    const before = await scene.begin(story, life);
    const acting = scene.act(story);
    if (mayComeOrNot.test(dieAt)) await Promise.race([life.died, life.done(scene.last)]);
    else await life.died;
    life.kill();
    await acting;
    story.setHanging(false);
    await story.start();
    await story.surface.redeliver();
    await scene.afterwards(story, before, { surface, isDone: (step) => life.steps.includes(step) });
  });
}

function toDeath(step: Step, side: "before" | "after"): DieAt {
  const operation = operationOf(step);
  return `${operation} ${side} ${Number(step.slice(operation.length + 1))}`;
}

function operationOf(step: Step): string {
  return step.slice(0, step.lastIndexOf(" "));
}
